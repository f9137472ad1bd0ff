// Single flight: if several lookups miss the same key at the same time, one compiles and the others
// wait for it; in this process by a table, between processes by the claims of the stores.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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

// How one lookup gets the right to compile.
class FlightPlan {
 public:
  // `name` is the same for all lookups of the same entries. Either store may be null.
  FlightPlan(std::string name, std::string_view key, LocalStore* local, CacheStore* remote,
             std::chrono::milliseconds max_wait);

  // Waits while another lookup compiles the key, and calls `look_again` from time to time. Returns
  // true when that has found the entry; false: compile, and keep `flight` until the entry is
  // stored. Waits for one other compile at most, and not for a compile that waits for this thread.
  bool WaitOrClaim(FunctionRef<bool()> look_again, std::shared_ptr<Flight>& flight);

  int64_t waited_ns() const { return waited_ns_; }

 private:
  ClaimState ClaimIn(CacheStore* store, std::unique_ptr<CacheClaim>& claim,
                     FunctionRef<bool()> look_again, bool& is_found);

  std::string name_;
  std::string_view key_;
  LocalStore* local_;
  CacheStore* remote_;
  std::chrono::steady_clock::time_point deadline_;
  int64_t waited_ns_ = 0;
};

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
