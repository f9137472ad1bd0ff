// Single flight: if several lookups miss the same key at the same time, one compiles and the others
// wait for it; in this process by a table, between processes by the claims of the stores.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libtrace/cache/cache_store.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

// Held by a lookup that compiles, until it has stored the entry; may be empty.
class Flight {
 public:
  Flight() = default;
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Called once compiling begins: after it, others need not take turns.
  void BeginCompile() { has_compiled_ = true; }

 private:
  friend class FlightPlan;
  std::string name_;  // in the table of this process; "" = not in it
  int pid_ = 0;
  bool has_compiled_ = false;
  std::unique_ptr<CacheClaim> local_, remote_;
};

// Why a lookup compiles although another one compiles the key.
enum class GaveUp { kNot, kAfterMaxWait, kNested };

struct FlightWaits {
  std::chrono::milliseconds max_wait{600'000};
  // For another process, of a thread that compiles another key, if the two could wait for each other.
  std::chrono::milliseconds max_nested_wait{10'000};
};

// How one lookup gets the right to compile.
//
// A thread that compiles one key and wants another one waits for the process that has it for as long
// as it takes if the other key comes later in the order of keys, which is the same in all processes:
// these waits cannot form a circle. Otherwise it waits for max_nested_wait, then compiles for itself.
// In this process circles are seen, and nobody waits in one.
class FlightPlan {
 public:
  // `name` is the same for all lookups of the same entries in this process, `key` in all processes.
  // Either store may be null.
  FlightPlan(std::string name, std::string key, LocalStore* local, CacheStore* remote,
             const FlightWaits& waits);

  // Waits while another lookup compiles the key, and calls `look_again` from time to time. Returns
  // true when that has found the entry; false: compile, and keep `flight` until the entry is
  // stored. Waits for one other compile at most, and not for a compile that waits for this thread.
  bool WaitOrClaim(FunctionRef<bool()> look_again, std::shared_ptr<Flight>& flight);

  int64_t waited_ns() const { return waited_ns_; }
  GaveUp gave_up() const { return gave_up_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Joined { kFirst, kFinished, kGivenUp };

  Joined Join();
  ClaimState ClaimIn(CacheStore* store, std::unique_ptr<CacheClaim>& claim,
                     FunctionRef<bool()> look_again, bool& is_found);

  std::string name_, key_;
  std::string place_;  // in the order; what has no store comes before a key's lookup in stores
  LocalStore* local_;
  CacheStore* remote_;
  FlightWaits waits_;
  Clock::time_point deadline_;
  std::optional<Clock::time_point> nested_deadline_;
  bool is_in_order_ = true;
  int64_t waited_ns_ = 0;
  GaveUp gave_up_ = GaveUp::kNot;
};

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
