#include "core/cache/single_flight.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/per_process.h"

namespace libtrace::detail {
namespace {

constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{250};

// Who compiles what in this process, and who waits for it.
struct Flights {
  struct Owner {
    std::thread::id thread;
    std::string place;  // see FlightPlan::place_
  };
  std::mutex mutex;
  std::condition_variable is_changed;
  std::map<std::string, Owner> owner_of;
  std::map<std::thread::id, std::string> awaited_by;
  std::set<std::thread::id> waiting_for_process;

  // Calls `matches` with the owner of `name`, then with whom that one waits for, and so on, until it
  // is true. False: the last of them waits for none. Waiting in a circle counts as true.
  template <class Matches>
  bool AnyOwner(const std::string& name, Matches&& matches) const {
    std::string awaited = name;
    for (size_t steps = 0; steps <= owner_of.size(); ++steps) {
      const auto owner = owner_of.find(awaited);
      if (owner == owner_of.end()) return false;
      if (matches(owner->second.thread)) return true;
      const auto next = awaited_by.find(owner->second.thread);
      if (next == awaited_by.end()) return false;
      awaited = next->second;
    }
    return true;
  }
  // Whether the owner of `name` waits, possibly through others, for this thread.
  bool WouldWaitForItself(const std::string& name) const {
    return AnyOwner(name,
                    [](std::thread::id owner) { return owner == std::this_thread::get_id(); });
  }
  bool WaitsForProcess(const std::string& name) const {
    return AnyOwner(name,
                    [&](std::thread::id owner) { return waiting_for_process.count(owner) != 0; });
  }
};

// Never destroyed: threads may compile while the process ends. A forked child has a table of its
// own, because the threads that compile are not in it.
constinit std::atomic<PerProcess<Flights>*> g_flights{nullptr};
Flights& TheFlights() { return MadeOnce(g_flights).get(); }

// This thread waits for another process meanwhile.
class ProcessWait {
 public:
  ProcessWait() {
    const std::lock_guard lock(flights_.mutex);
    flights_.waiting_for_process.insert(std::this_thread::get_id());
  }
  ~ProcessWait() {
    const std::lock_guard lock(flights_.mutex);
    flights_.waiting_for_process.erase(std::this_thread::get_id());
  }
  ProcessWait(const ProcessWait&) = delete;
  ProcessWait& operator=(const ProcessWait&) = delete;

 private:
  Flights& flights_ = TheFlights();
};

}  // namespace

Flight::~Flight() {
  for (std::unique_ptr<CacheClaim>* claim : {&remote_, &local_}) {
    if (*claim && has_compiled_ && pid_ == getpid()) (*claim)->Finish();
    claim->reset();
  }
  if (name_.empty() || pid_ != getpid()) return;
  Flights& flights = TheFlights();
  const std::lock_guard lock(flights.mutex);
  flights.owner_of.erase(name_);
  flights.is_changed.notify_all();
}

FlightPlan::FlightPlan(std::string name, std::string key, LocalStore* local, CacheStore* remote,
                       const FlightWaits& waits)
    : name_(std::move(name)),
      key_(std::move(key)),
      place_(key_ + (local == nullptr && remote == nullptr ? "" : "\n")),
      local_(local),
      remote_(remote),
      waits_(waits),
      deadline_(Clock::now() + waits.max_wait) {}

// Takes the place of the name in the table, or waits until the one who has it is done.
FlightPlan::Joined FlightPlan::Join() {
  Flights& flights = TheFlights();
  std::unique_lock lock(flights.mutex);
  const std::thread::id self = std::this_thread::get_id();
  for (const auto& [name, owner] : flights.owner_of)
    is_in_order_ &= owner.thread != self || owner.place < place_;
  if (flights.owner_of.try_emplace(name_, Flights::Owner{self, place_}).second)
    return Joined::kFirst;
  gave_up_ = GaveUp::kNested;
  if (flights.WouldWaitForItself(name_)) return Joined::kGivenUp;
  flights.awaited_by[self] = name_;
  const auto is_free = [&] { return flights.owner_of.count(name_) == 0; };
  bool is_done = false, may_wait = true;
  while (!is_done && may_wait) {
    auto until = deadline_;
    if (!is_in_order_) until = std::min(until, Clock::now() + waits_.max_nested_wait);
    is_done = flights.is_changed.wait_until(lock, until, is_free);
    // max_nested_wait limits only the wait for a compile that itself waits for another process.
    may_wait = until != deadline_ && !flights.WaitsForProcess(name_);
    if (until == deadline_) gave_up_ = GaveUp::kAfterMaxWait;
  }
  flights.awaited_by.erase(self);
  if (is_done) gave_up_ = GaveUp::kNot;
  return is_done ? Joined::kFinished : Joined::kGivenUp;
}

// Asks the store until it grants the claim, knows that another one finished, or time is up.
ClaimState FlightPlan::ClaimIn(CacheStore* store, std::unique_ptr<CacheClaim>& claim,
                               FunctionRef<bool()> look_again, bool& is_found) {
  int64_t start_ns = SteadyNs();
  auto pause = kFirstPause;
  ClaimState state = store->Claim(key_, claim);
  if (state != ClaimState::kHeld) return state;
  const ProcessWait waiting;
  if (!is_in_order_ && !nested_deadline_) nested_deadline_ = Clock::now() + waits_.max_nested_wait;
  while (state == ClaimState::kHeld) {
    const auto next = Clock::now() + pause;
    if (next > deadline_ || (nested_deadline_ && next > *nested_deadline_)) {
      gave_up_ = next > deadline_ ? GaveUp::kAfterMaxWait : GaveUp::kNested;
      return ClaimState::kUnavailable;
    }
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
  auto taken = std::make_shared<Flight>();
  const Joined joined = Join();
  if (joined != Joined::kFirst) waited_ns_ = SteadyNs() - start_ns;
  if (joined == Joined::kFirst) {
    taken->pid_ = getpid();
    taken->name_ = name_;
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
  if (is_found) gave_up_ = GaveUp::kNot;
  if (!is_found && joined == Joined::kFirst) flight = std::move(taken);
  return is_found;
}

}  // namespace libtrace::detail
