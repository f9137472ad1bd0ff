#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/chromium_event.h"
#include "libtrace/compile.h"
#include "libtrace/libtrace.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"

using libtrace::CallSite;

namespace {

std::string_view Text(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

CallSite Site(const libtrace_site* site) {
  if (site == nullptr) return {};
  return {site->file, site->function, site->line};
}

// A member that a caller compiled against an older header does not have reads as the default.
template <class Struct, class Member>
Member Get(const Struct* from, Member Struct::*member, Member absent) {
  const auto offset = static_cast<size_t>(reinterpret_cast<const char*>(&(from->*member)) -
                                          reinterpret_cast<const char*>(from));
  return offset + sizeof(Member) <= from->struct_size ? from->*member : absent;
}

// Nothing may be thrown into C.
template <class F>
auto Shielded(F&& function) noexcept -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    if constexpr (!std::is_void_v<decltype(function())>) return {};
  }
}

}  // namespace

struct libtrace_compile {
  libtrace::Compile compile;
};
struct libtrace_span {
  libtrace_span(std::string_view name, CallSite site) : span(name, {}, site) {}
  libtrace::TimedSpan span;
};
struct libtrace_context {
  libtrace::Context context;
  std::optional<libtrace::ContextScope> scope;
};

extern "C" {

uint32_t libtrace_abi_version(void) { return LIBTRACE_ABI_VERSION; }
const char* libtrace_version(void) { return LIBTRACE_VERSION; }

void libtrace_options_init(libtrace_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
  options->rank = -1;
}

int libtrace_start(const libtrace_options* c_options) {
  using O = libtrace_options;
  if (c_options == nullptr) return 0;
  return Shielded([&] {
    libtrace::Options options;
    options.directory = Text(Get<O, const char*>(c_options, &O::directory, nullptr));
    const int64_t rank = Get<O, int64_t>(c_options, &O::rank, -1);
    if (rank >= 0 && rank <= UINT32_MAX) options.rank = static_cast<uint32_t>(rank);
    options.detail = Get(c_options, &O::detail, 0) != 0;
    const int32_t async = Get(c_options, &O::async, LIBTRACE_ASYNC_OFF + 0);
    if (async == LIBTRACE_ASYNC_BLOCK) options.async = libtrace::AsyncMode::kBlock;
    if (async == LIBTRACE_ASYNC_DROP) options.async = libtrace::AsyncMode::kDrop;
    const auto set_size = [&](uint64_t O::*member, uint64_t& size) {
      if (const uint64_t value = Get<O, uint64_t>(c_options, member, 0); value != 0) size = value;
    };
    set_size(&O::queue_size_bytes, options.queue_size_bytes);
    set_size(&O::rotate_size_bytes, options.rotate_size_bytes);
    set_size(&O::budget_size_bytes, options.budget_size_bytes);
    set_size(&O::max_payload_size_bytes, options.max_payload_size_bytes);
    return libtrace::Start(std::move(options)) ? 1 : 0;
  });
}

void libtrace_stop(void) { libtrace::Stop(); }
int libtrace_enabled(void) { return libtrace::IsEnabled() ? 1 : 0; }

int libtrace_flush(uint32_t timeout_ms) {
  return libtrace::Flush(std::chrono::milliseconds(timeout_ms)) ? 1 : 0;
}

void libtrace_set_rank(int64_t rank) {
  std::optional<uint32_t> value;
  if (rank >= 0 && rank <= UINT32_MAX) value = static_cast<uint32_t>(rank);
  libtrace::SetRank(value);
}

void libtrace_get_stats(libtrace_stats* stats) {
  if (stats == nullptr) return;
  const libtrace::Stats current = libtrace::GetStats();
  libtrace_stats full{stats->struct_size, current.record_count, current.size_bytes,
                      current.lost_record_count};
  std::memcpy(stats, &full, std::min(stats->struct_size, sizeof full));
}

void libtrace_emit(const libtrace_site* site, const char* key, const char* metadata,
                   const void* payload, size_t payload_size) {
  const auto write_metadata = [&](libtrace::MetadataWriter& json) {
    if (metadata != nullptr) json.Json(metadata);
  };
  const auto set_payload = [&](libtrace::Payload& target) {
    if (payload != nullptr) target.Borrow({static_cast<const char*>(payload), payload_size});
  };
  libtrace::Emit(Text(key), write_metadata, set_payload, {}, Site(site));
}

void libtrace_emit_artifact(const libtrace_site* site, const char* name, const char* encoding,
                            const void* payload, size_t payload_size) {
  const auto set_payload = [&](libtrace::Payload& target) {
    if (payload != nullptr) target.Borrow({static_cast<const char*>(payload), payload_size});
  };
  libtrace::EmitArtifact(Text(name), Text(encoding), set_payload, {}, Site(site));
}

void libtrace_instant(const libtrace_site* site, const char* name, const char* args) {
  libtrace::EmitInstant(
      Text(name),
      [&](libtrace::JsonWriter& json) {
        if (args != nullptr) json.MembersOf(args);
      },
      Site(site));
}

uint32_t libtrace_new_frame(void) { return libtrace::Frame().id(); }

libtrace_compile* libtrace_compile_begin(const libtrace_site* site, uint32_t frame_id,
                                         uint32_t frame_compile_id, const char* function,
                                         const char* file, uint32_t line,
                                         const char* const* recompile_reasons,
                                         size_t recompile_reason_count) {
  return Shielded([&] {
    libtrace::CompileDescription description;
    description.function = Text(function);
    description.file = Text(file);
    if (line != 0) description.line = line;
    for (size_t i = 0; recompile_reasons != nullptr && i < recompile_reason_count; ++i) {
      description.recompile_reasons.emplace_back(Text(recompile_reasons[i]));
    }
    return new libtrace_compile{{libtrace::CompileId::Frame(frame_id, frame_compile_id),
                                 std::move(description), Site(site)}};
  });
}

void libtrace_compile_restart(libtrace_compile* compile, const char* reason) {
  if (compile != nullptr) compile->compile.Restart(Text(reason));
}

void libtrace_compile_fail(libtrace_compile* compile, const char* type, const char* reason) {
  if (compile != nullptr) compile->compile.Fail(Text(type), Text(reason));
}

void libtrace_compile_end(libtrace_compile* compile) { delete compile; }

libtrace_context* libtrace_context_take(void) {
  return Shielded([] { return new libtrace_context{libtrace::CurrentContext(), {}}; });
}

void libtrace_context_enter(libtrace_context* context) {
  if (context == nullptr) return;
  Shielded([&] { context->scope.emplace(context->context); });
}

void libtrace_context_leave(libtrace_context* context) {
  if (context != nullptr) context->scope.reset();
}

void libtrace_context_free(libtrace_context* context) { delete context; }

libtrace_span* libtrace_span_begin(const libtrace_site* site, const char* name) {
  if (!libtrace::IsEnabled()) return nullptr;
  return Shielded([&] { return new libtrace_span(Text(name), Site(site)); });
}

void libtrace_span_arg(libtrace_span* span, const char* name, const char* json) {
  if (span == nullptr) return;
  Shielded([&] { span->span.Arg(Text(name), libtrace::RawJson{std::string(Text(json))}); });
}

void libtrace_span_end(libtrace_span* span) { delete span; }

void libtrace_emit_cache_event(const libtrace_site* site, const libtrace_cache_event* event) {
  using E = libtrace_cache_event;
  if (event == nullptr || !libtrace::IsEnabled()) return;
  Shielded([&] {
    libtrace::CacheInfo info;
    const auto text = [&](const char* E::*member, std::optional<std::string>& target) {
      if (const char* const value = Get<E, const char*>(event, member, nullptr)) target = value;
    };
    const int32_t state = Get(event, &E::state, LIBTRACE_CACHE_MISS + 0);
    if (state < LIBTRACE_CACHE_HIT || state > LIBTRACE_CACHE_DISABLED) return;
    text(&E::key, info.key);
    text(&E::status_detailed, info.cache_status_detailed);
    text(&E::guard, info.cache_status_guard_expr);
    text(&E::bypass_reason, info.cache_bypass_reason);
    const auto lines = Get<E, const char* const*>(event, &E::components, nullptr);
    const size_t count = Get<E, size_t>(event, &E::component_count, 0);
    info.components.emplace();
    for (size_t i = 0; lines != nullptr && i < count; ++i) {
      info.components->emplace_back(Text(lines[i]));
    }
    const int64_t time_ns = Get<E, int64_t>(event, &E::time_ns, -1);
    if (time_ns >= 0 && state == LIBTRACE_CACHE_HIT) info.time_saved_ns = time_ns;
    if (time_ns >= 0 && state == LIBTRACE_CACHE_MISS) info.time_taken_ns = time_ns;
    libtrace::EmitCacheEvent(Text(Get<E, const char*>(event, &E::layer, nullptr)),
                             static_cast<libtrace::CacheState>(state), info, Site(site));
  });
}

size_t libtrace_component_line(const char* name, const char* text, const void* content,
                               size_t content_size, char* line, size_t line_size) {
  return Shielded([&]() -> size_t {
    const std::string_view bytes(static_cast<const char*>(content),
                                 content == nullptr ? 0 : content_size);
    libtrace::CacheKeyBuilder key("k");
    key.AddContent(Text(name), Text(text), bytes);
    const std::string full = key.Build().components.front();
    if (line != nullptr && line_size > 0) {
      const size_t copied = std::min(full.size(), line_size - 1);
      std::memcpy(line, full.data(), copied);
      line[copied] = '\0';
    }
    return full.size();
  });
}

}  // extern "C"
