#include "libtrace/artifacts/cache_event.h"

#include "core/clock.h"
#include "core/errno_scope.h"
#include "libtrace/chromium_event.h"
#include "libtrace/log_format.h"
#include "libtrace/scope.h"

namespace libtrace {

std::string_view ToString(CacheState state) noexcept {
  constexpr std::string_view kNames[] = {"hit", "miss", "bypass", "disabled"};
  return kNames[static_cast<size_t>(state)];
}

namespace {

void WriteCacheInfo(JsonWriter& json, CacheState state, const CacheInfo& info) {
  json.OptionalField("cache_status_detailed", info.cache_status_detailed)
      .OptionalField("cache_status_guard_expr", info.cache_status_guard_expr)
      .OptionalField("forward_time_saved_ms", info.forward_time_saved_ms)
      .OptionalField("backward_time_saved_ms", info.backward_time_saved_ms)
      .OptionalField("time_saved_ms", info.time_saved_ms)
      .OptionalField("cache_bypass_reason", info.cache_bypass_reason)
      .OptionalField("cache_bypass_exception_type", info.cache_bypass_exception_type)
      .OptionalField("cache_bypass_traceback", info.cache_bypass_traceback)
      .OptionalField("cache_bypass_hard_exception", info.cache_bypass_hard_exception);
  if (info.key && info.key->empty()) {
    json.Key("key").Null();
  } else {
    json.OptionalField("key", info.key);
  }
  json.OptionalField("components", info.components)
      .Field("cache_event_time",
             info.cache_event_time_ns ? *info.cache_event_time_ns : detail::NowNs())
      .Field("cache_state", ToString(state))
      .OptionalField("triton_bundler_meta", info.triton_bundler_meta)
      .OptionalField("time_saved_ns", info.time_saved_ns)
      .OptionalField("time_taken_ns", info.time_taken_ns)
      .OptionalField("ephemeral_timeout_increase", info.ephemeral_timeout_increase_s)
      .OptionalField("answered_by", info.answered_by)
      .OptionalField("remote_error", info.remote_error)
      .OptionalField("waited_ns", info.waited_ns)
      .OptionalField("wait_given_up", info.wait_given_up);
  if (info.compile_id) {
    json.Field("compile_id", *info.compile_id);
  } else if (!CurrentContext().compile_id.empty()) {
    json.Field("compile_id", ToString(CurrentContext().compile_id));
  }
}

// `write` writes the members of the payload.
template <class Write>
void EmitCacheInfo(std::string_view layer, CacheState state, Write&& write,
                   CallSite location) noexcept {
  if (!IsEnabled()) return;
  const detail::ErrnoScope keeps_errno;
  try {
    std::string name(layer);
    switch (state) {
      case CacheState::kHit:
        name += format::kCacheHitSuffix;
        break;
      case CacheState::kMiss:
        name += format::kCacheMissSuffix;
        break;
      case CacheState::kBypass:
        name += format::kCacheBypassSuffix;
        break;
      case CacheState::kDisabled:
        // A cache that is switched off leaves no artifact, as in PyTorch.
        name += format::kCacheDisabledSuffix;
        EmitInstant(name, {}, location);
        return;
    }
    EmitJsonArtifact(
        name, JsonStyle::kOneLine,
        [&](JsonWriter& json) {
          json.BeginObject();
          write(json);
          json.EndObject();
        },
        {}, location);
  } catch (...) {  // no memory for a name
  }
}

}  // namespace

void EmitCacheEvent(std::string_view layer, CacheState state, const CacheInfo& info,
                    CallSite location) noexcept {
  EmitCacheInfo(
      layer, state, [&](JsonWriter& json) { WriteCacheInfo(json, state, info); }, location);
}

void detail::EmitCacheEvent(std::string_view layer, CacheState state,
                            FunctionRef<void(CacheInfo&)> fill, CallSite location) noexcept {
  EmitCacheInfo(
      layer, state,
      [&](JsonWriter& json) {
        CacheInfo info;
        fill(info);
        WriteCacheInfo(json, state, info);
      },
      location);
}

}  // namespace libtrace
