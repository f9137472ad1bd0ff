// Cache events: `<layer>_cache_hit`, `_miss`, `_bypass` (JSON payload, one line)
// and the instant event `<layer>_cache_disabled`.
//
// The payload is PyTorch's cache_info (torch/_inductor/codecache.py, FxGraphCache.load_with_key;
// torch/_functorch/_aot_autograd/autograd_cache.py, AOTAutogradCache.try_load), the union of both.
// Use a layer name of your own (`libtrace_…`); `fx_graph` and `aotautograd` belong to PyTorch.
// Schema: schemas/json/libtrace/cache_event.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/trace.h"

namespace libtrace LIBTRACE_EXPORT {

enum class CacheState { kHit, kMiss, kBypass, kDisabled };
std::string_view ToString(CacheState state) noexcept;  // hit, miss, bypass, disabled

// Members are written in this order, absent ones left out.
struct CacheInfo {
  // hit, full_miss, guard_miss; ours: remote_error (the remote store might have had the entry)
  std::optional<std::string> cache_status_detailed{};
  std::optional<std::string> cache_status_guard_expr{};  // the guards that held, or did not
  std::optional<double> forward_time_saved_ms{};         // outer layer, hit
  std::optional<double> backward_time_saved_ms{};
  std::optional<double> time_saved_ms{};
  std::optional<std::string> cache_bypass_reason{};  // bypass
  std::optional<std::string> cache_bypass_exception_type{};
  std::optional<std::vector<std::string>> cache_bypass_traceback{};  // lines
  // True: an unexpected failure, not a declared limit.
  std::optional<bool> cache_bypass_hard_exception;
  std::optional<std::string> key{};                      // written as null on bypass if it is empty
  std::optional<std::vector<std::string>> components{};  // `[51 base32 characters] name: text`
  std::optional<int64_t> cache_event_time_ns{};      // written as cache_event_time; default: now
  std::optional<std::string> triton_bundler_meta{};  // as PyTorch's, which uses it for Triton
  std::optional<int64_t> time_saved_ns{};  // hit: what compiling took when the entry was made
  std::optional<int64_t> time_taken_ns{};  // miss: what compiling took now
  // Written without the unit, as PyTorch does.
  std::optional<int64_t> ephemeral_timeout_increase_s{};
  std::optional<std::string> answered_by{};   // ours: local, remote, memory
  std::optional<std::string> remote_error{};  // ours: the error of the remote store
  std::optional<int64_t> waited_ns{};         // ours: for another one that compiled the key
  // Ours: why it compiles although another one compiles the key: max_wait (that took too long) or
  // nested (that may wait for this thread).
  std::optional<std::string> wait_given_up{};
  std::optional<std::string> compile_id{};  // default: the thread's; none outside a compile
};

void EmitCacheEvent(std::string_view layer, CacheState state, const CacheInfo& info,
                    CallSite location = CallSite::Current()) noexcept;

namespace detail {
void EmitCacheEvent(std::string_view layer, CacheState state, FunctionRef<void(CacheInfo&)> fill,
                    CallSite location) noexcept;
}
// The same with a function that fills in the CacheInfo; called only when tracing is on. If it
// throws, the record is lost and counted.
template <class Fill, class = std::enable_if_t<!std::is_convertible_v<Fill&&, const CacheInfo&>>>
void EmitCacheEvent(std::string_view layer, CacheState state, Fill&& fill,
                    CallSite location = CallSite::Current()) noexcept {
  static_assert(
      std::is_invocable_v<Fill&, CacheInfo&>,
      "libtrace: write the function as [&](libtrace::CacheInfo& info) { info.key = my_key; }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) detail::EmitCacheEvent(layer, state, fill, location);
}

}  // namespace LIBTRACE_EXPORT
