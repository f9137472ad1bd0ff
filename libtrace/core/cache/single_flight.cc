#include "core/cache/single_flight.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/clock.h"

namespace libtrace::detail {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{250};

// Who compiles what in this process, and who waits for it.
struct Flights {
  std::mutex mutex;
  std::condition_variable is_changed;
  std::map<std::string, std::thread::id> owner_of;
  std::map<std::thread::id, std::string> awaited_by;

  // Whether the owner of `name` waits, possibly through others, for this thread.
  bool WouldWaitForItself(const std::string& name) const {
    std::string awaited = name;
    for (size_t steps = 0; steps <= owner_of.size(); ++steps) {
      const auto owner = owner_of.find(awaited);
      if (owner == owner_of.end()) return false;
      if (owner->second == std::this_thread::get_id()) return true;
      const auto next = awaited_by.find(owner->second);
      if (next == awaited_by.end()) return false;
      awaited = next->second;
    }
    return true;
  }
};

// Never destroyed: threads may compile while the process ends. A forked child has a table of its
// own, because the threads that compile are not in it.
Flights*& TheFlights() {
  static Flights* flights = [] {
    pthread_atfork([] { TheFlights()->mutex.lock(); }, [] { TheFlights()->mutex.unlock(); },
                   [] { TheFlights() = new Flights; });
    return new Flights;
  }();
  return flights;
}

enum class Joined { kFirst, kFinished, kGivenUp };

// Takes the place of `name` in the table, or waits until the one who has it is done.
Joined Join(const std::string& name, Clock::time_point deadline) {
  Flights& flights = *TheFlights();
  std::unique_lock lock(flights.mutex);
  const std::thread::id self = std::this_thread::get_id();
  if (flights.owner_of.try_emplace(name, self).second) return Joined::kFirst;
  if (flights.WouldWaitForItself(name)) return Joined::kGivenUp;
  flights.awaited_by[self] = name;
  const bool is_done = flights.is_changed.wait_until(
      lock, deadline, [&] { return flights.owner_of.count(name) == 0; });
  flights.awaited_by.erase(self);
  return is_done ? Joined::kFinished : Joined::kGivenUp;
}

}  // namespace

Flight::~Flight() {
  for (std::unique_ptr<CacheClaim>* claim : {&remote_, &local_}) {
    if (*claim && has_compiled_ && pid_ == getpid()) (*claim)->Finish();
    claim->reset();
  }
  if (name_.empty() || pid_ != getpid()) return;
  Flights& flights = *TheFlights();
  const std::lock_guard lock(flights.mutex);
  flights.owner_of.erase(name_);
  flights.is_changed.notify_all();
}

FlightPlan::FlightPlan(std::string name, std::string_view key, LocalStore* local,
                       CacheStore* remote, std::chrono::milliseconds max_wait)
    : name_(std::move(name)),
      key_(key),
      local_(local),
      remote_(remote),
      deadline_(Clock::now() + max_wait) {}

// Asks the store until it grants the claim, knows that another one finished, or time is up.
ClaimState FlightPlan::ClaimIn(CacheStore* store, std::unique_ptr<CacheClaim>& claim,
                               FunctionRef<bool()> look_again, bool& is_found) {
  int64_t start_ns = SteadyNs();
  auto pause = kFirstPause;
  ClaimState state = store->Claim(key_, claim);
  while (state == ClaimState::kHeld) {
    if (Clock::now() + pause > deadline_) return ClaimState::kUnavailable;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
    waited_ns_ += SteadyNs() - std::exchange(start_ns, SteadyNs());
    // The entry may be of a process whose claim was never released.
    is_found = pause == kLongestPause && look_again();
    state = is_found ? ClaimState::kFinished : store->Claim(key_, claim);
  }
  return state;
}

bool FlightPlan::WaitOrClaim(FunctionRef<bool()> look_again, std::shared_ptr<Flight>& flight) {
  const int64_t start_ns = SteadyNs();
  bool is_found = false;
  bool may_claim = true;
  const Joined joined = Join(name_, deadline_);
  if (joined != Joined::kFirst) waited_ns_ = SteadyNs() - start_ns;
  auto taken = std::make_shared<Flight>();
  if (joined == Joined::kFirst) {
    taken->name_ = name_;
    taken->pid_ = getpid();
    CacheStore* const stores[] = {local_, remote_};
    std::unique_ptr<CacheClaim>* const claims[] = {&taken->local_, &taken->remote_};
    for (size_t i = 0; i < 2 && may_claim; ++i) {
      if (stores[i] == nullptr) continue;
      may_claim = ClaimIn(stores[i], *claims[i], look_again, is_found) != ClaimState::kFinished;
    }
  }
  // Somebody may have stored the entry between the search and the claim.
  if (!is_found && joined != Joined::kGivenUp) is_found = look_again();
  // After another one's compile the entry may still not be there: it was not stored, or its guards
  // do not hold here. Those who waited then compile side by side.
  if (!is_found && joined == Joined::kFirst) flight = std::move(taken);
  return is_found;
}

}  // namespace libtrace::detail
