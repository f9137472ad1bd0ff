// The C interface: settings, compiles, spans and stacks. What it emits is in c_api_emit.cc.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "core/c_api_arguments.h"
#include "libtrace/chromium_event.h"
#include "libtrace/compile.h"
#include "libtrace/libtrace.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"

using libtrace::CallSite;
using namespace libtrace::c_api;  // NOLINT: its own helpers

// What belongs to a thread and is ended on another one is left in memory: the first thread still
// refers to it.
struct libtrace_compile {
  libtrace::Compile compile;
  const char* thread = &t_thread_mark;
};
struct libtrace_span {
  libtrace_span(std::string_view name, CallSite site) : span(name, {}, site) {}
  libtrace::TimedSpan span;
};
struct libtrace_stack {
  explicit libtrace_stack(libtrace::Stack frames_in)
      : frames(std::move(frames_in)), scope(frames) {}
  libtrace::Stack frames;
  libtrace::StackScope scope;
  const char* thread = &t_thread_mark;
};
struct libtrace_context {
  libtrace::Context context;
  std::optional<libtrace::ContextScope> scope;
  const char* thread = nullptr;  // that entered it
  bool is_elsewhere() const { return scope && thread != &t_thread_mark; }
};

namespace {

libtrace::Stack FramesOf(const libtrace_frame* frames, size_t count) {
  using F = libtrace_frame;
  libtrace::Stack stack;
  for (size_t i = 0; frames != nullptr && i < count; ++i) {
    const F* const frame = At(frames, i);
    libtrace::StackFrame one;
    one.file = Text(Get<F, const char*>(frame, &F::file, nullptr));
    one.function = Text(Get<F, const char*>(frame, &F::function, nullptr));
    if (const uint32_t line = Get<F, uint32_t>(frame, &F::line, 0); line != 0) one.line = line;
    if (const char* const text = Get<F, const char*>(frame, &F::source_text, nullptr)) {
      one.source_text = text;
    }
    stack.push_back(std::move(one));
  }
  return stack;
}

void AddReasons(const char* const* reasons, size_t count,
                libtrace::CompileDescription& description) {
  if (reasons == nullptr || !libtrace::IsEnabled()) return;
  for (size_t i = 0; i < count; ++i) description.recompile_reasons.emplace_back(Text(reasons[i]));
}

}  // namespace

extern "C" {

uint32_t libtrace_abi_version(void) { return LIBTRACE_ABI_VERSION; }
const char* libtrace_version(void) { return LIBTRACE_VERSION; }

// A caller compiled against version 1 has no more room than that version's struct.
void(libtrace_options_init)(libtrace_options* options) {
  if (options == nullptr) return;
  constexpr size_t kSizeOfVersion1 = offsetof(libtrace_options, on_error);
  std::memset(options, 0, kSizeOfVersion1);
  options->struct_size = kSizeOfVersion1;
  options->rank = -1;
}
void libtrace_options_init_sized(libtrace_options* options, size_t struct_size) {
  if (options == nullptr || struct_size < sizeof options->struct_size) return;
  std::memset(options, 0, struct_size);
  options->struct_size = struct_size;
  if (struct_size >= offsetof(libtrace_options, rank) + sizeof options->rank) options->rank = -1;
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
    using OnError = void (*)(void*, const char*, const char*);
    if (const auto on_error = Get<O, OnError>(c_options, &O::on_error, nullptr)) {
      void* const user = Get<O, void*>(c_options, &O::on_error_user, nullptr);
      options.on_error = [on_error, user](libtrace::LossKind kind, const std::string& message) {
        on_error(user, std::string(libtrace::ToString(kind)).c_str(), message.c_str());
      };
    }
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
    AddReasons(recompile_reasons, recompile_reason_count, description);
    return new libtrace_compile{
        {libtrace::CompileId::Frame(frame_id, frame_compile_id), description, Site(site)}};
  });
}

libtrace_compile* libtrace_compile_begin_described(const libtrace_site* site,
                                                   const libtrace_compile_description* d) {
  using D = libtrace_compile_description;
  if (d == nullptr) return nullptr;
  return Shielded([&] {
    const auto id = libtrace::CompileId::Frame(Get<D, uint32_t>(d, &D::frame_id, 0),
                                               Get<D, uint32_t>(d, &D::frame_compile_id, 0));
    libtrace::CompileDescription description;
    description.function = Text(Get<D, const char*>(d, &D::function, nullptr));
    description.file = Text(Get<D, const char*>(d, &D::file, nullptr));
    if (const uint32_t line = Get<D, uint32_t>(d, &D::line, 0); line != 0) description.line = line;
    if (libtrace::IsEnabled()) {
      description.callers = FramesOf(Get<D, const libtrace_frame*>(d, &D::callers, nullptr),
                                     Get<D, size_t>(d, &D::caller_count, 0));
      AddReasons(Get<D, const char* const*>(d, &D::recompile_reasons, nullptr),
                 Get<D, size_t>(d, &D::recompile_reason_count, 0), description);
    }
    return new libtrace_compile{{id, description, Site(site)}};
  });
}

int libtrace_compile_metric(libtrace_compile* compile, const char* name, const char* json) {
  if (compile == nullptr) return 0;
  if (!libtrace::IsEnabled()) return 1;
  return Shielded(
      [&] { return compile->compile.metrics().SetJson(Text(name), Text(json)) ? 1 : 0; });
}

void libtrace_compile_restart(libtrace_compile* compile, const char* reason) {
  if (compile != nullptr) compile->compile.Restart(Text(reason));
}

void libtrace_compile_fail(libtrace_compile* compile, const char* type, const char* reason) {
  if (compile != nullptr) compile->compile.Fail(Text(type), Text(reason));
}

void libtrace_compile_end(libtrace_compile* compile) {
  if (compile == nullptr) return;
  compile->compile.End();
  if (compile->thread == &t_thread_mark) delete compile;
}

libtrace_context* libtrace_context_take(void) {
  return Shielded([] { return new libtrace_context{libtrace::CurrentContext(), {}, nullptr}; });
}

void libtrace_context_enter(libtrace_context* context) {
  if (context == nullptr || context->is_elsewhere()) return;
  Shielded([&] {
    context->scope.emplace(context->context);
    context->thread = &t_thread_mark;
  });
}

void libtrace_context_leave(libtrace_context* context) {
  if (context != nullptr && !context->is_elsewhere()) context->scope.reset();
}

void libtrace_context_free(libtrace_context* context) {
  if (context != nullptr && !context->is_elsewhere()) delete context;
}

libtrace_span* libtrace_span_begin(const libtrace_site* site, const char* name) {
  if (!libtrace::IsEnabled()) return nullptr;
  return Shielded([&] { return new libtrace_span(Text(name), Site(site)); });
}

void libtrace_span_arg(libtrace_span* span, const char* name, const char* json) {
  if (span == nullptr) return;
  Shielded([&] { span->span.Arg(Text(name), libtrace::RawJson{std::string(Text(json))}); });
}

void libtrace_span_end(libtrace_span* span) { delete span; }

libtrace_stack* libtrace_stack_begin(const libtrace_frame* frames, size_t frame_count) {
  if (!libtrace::IsEnabled()) return nullptr;
  return Shielded([&] { return new libtrace_stack(FramesOf(frames, frame_count)); });
}
void libtrace_stack_end(libtrace_stack* stack) {
  if (stack != nullptr && stack->thread == &t_thread_mark) delete stack;
}

}  // extern "C"
