#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/collective_log.h"
#include "libtrace/artifacts/collective_schedule.h"
#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/artifacts/provenance.h"
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

// The i-th struct of an array whose elements have the size that the caller knew.
template <class Struct>
const Struct* At(const Struct* array, size_t i) {
  return reinterpret_cast<const Struct*>(reinterpret_cast<const char*>(array) +
                                         i * array->struct_size);
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
struct libtrace_stack {
  explicit libtrace_stack(libtrace::Stack frames_in)
      : frames(std::move(frames_in)), scope(frames) {}
  libtrace::Stack frames;
  libtrace::StackScope scope;
};
struct libtrace_provenance {
  libtrace::Provenance provenance;
};
struct libtrace_execution_order {
  libtrace_execution_order(libtrace::GraphExecutionOrder::Options options, CallSite site)
      : order(options, site) {}
  libtrace::GraphExecutionOrder order;
};
struct libtrace_context {
  libtrace::Context context;
  std::optional<libtrace::ContextScope> scope;
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

std::vector<int64_t> ShapeOf(const int64_t* sizes, size_t count) {
  return sizes == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(sizes, sizes + count);
}

libtrace::IssuedCollective CollectiveOf(const libtrace_collective* c) {
  using C = libtrace_collective;
  libtrace::IssuedCollective one;
  const auto text = [&](const char* C::*member) { return Get<C, const char*>(c, member, nullptr); };
  one.sequence_number = Get<C, uint64_t>(c, &C::sequence_number, 0);
  one.op = Text(text(&C::op));
  one.process_group = Text(text(&C::process_group));
  if (const uint32_t size = Get<C, uint32_t>(c, &C::group_size, 0); size != 0)
    one.group_size = size;
  if (const char* const backend = text(&C::backend)) one.backend = backend;
  one.dtype = Text(text(&C::dtype));
  if (const char* const reduce_op = text(&C::reduce_op)) one.reduce_op = reduce_op;
  if (const int64_t* const sizes = Get<C, const int64_t*>(c, &C::input_shape, nullptr)) {
    one.input_shapes.push_back(ShapeOf(sizes, Get<C, size_t>(c, &C::input_rank, 0)));
  }
  if (const int64_t* const sizes = Get<C, const int64_t*>(c, &C::output_shape, nullptr)) {
    one.output_shapes.push_back(ShapeOf(sizes, Get<C, size_t>(c, &C::output_rank, 0)));
  }
  if (const int64_t us = Get<C, int64_t>(c, &C::start_us, -1); us >= 0) one.start_us = us;
  if (const int64_t ns = Get<C, int64_t>(c, &C::duration_ns, -1); ns >= 0) {
    one.duration_ns = static_cast<double>(ns);
  }
  return one;
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
    for (size_t i = 0; recompile_reasons != nullptr && i < recompile_reason_count; ++i) {
      description.recompile_reasons.emplace_back(Text(recompile_reasons[i]));
    }
    return new libtrace_compile{{libtrace::CompileId::Frame(frame_id, frame_compile_id),
                                 std::move(description), Site(site)}};
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
      const auto reasons = Get<D, const char* const*>(d, &D::recompile_reasons, nullptr);
      const size_t count = Get<D, size_t>(d, &D::recompile_reason_count, 0);
      for (size_t i = 0; reasons != nullptr && i < count; ++i) {
        description.recompile_reasons.emplace_back(Text(reasons[i]));
      }
    }
    return new libtrace_compile{{id, description, Site(site)}};
  });
}

int libtrace_compile_metric(libtrace_compile* compile, const char* name, const char* json) {
  if (compile == nullptr) return 0;
  return Shielded(
      [&] { return compile->compile.metrics().SetJson(Text(name), Text(json)) ? 1 : 0; });
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

libtrace_stack* libtrace_stack_begin(const libtrace_frame* frames, size_t frame_count) {
  if (!libtrace::IsEnabled()) return nullptr;
  return Shielded([&] { return new libtrace_stack(FramesOf(frames, frame_count)); });
}
void libtrace_stack_end(libtrace_stack* stack) { delete stack; }

void libtrace_emit_graph_dump(const libtrace_site* site, const char* name, const char* type,
                              const char* filename, const char* text, size_t text_size) {
  libtrace::EmitGraphDump(Text(name), Text(type), Text(filename),
                          {text, text == nullptr ? 0 : text_size}, Site(site));
}

void libtrace_emit_output_graph(const libtrace_site* site, const char* sizes, const char* text,
                                size_t text_size) {
  libtrace::Emit(
      libtrace::format::kDynamoOutputGraph,
      [&](libtrace::MetadataWriter& json) {
        json.BeginObject().Key("sizes").Json(sizes == nullptr ? "{}" : sizes);
        json.EndObject();
      },
      [&](libtrace::Payload& target) {
        target.Borrow({text, text == nullptr ? 0 : text_size});
      },
      {}, Site(site));
}

void libtrace_emit_output_code(const libtrace_site* site, const char* file_path, const char* code,
                               size_t code_size) {
  libtrace::EmitOutputCode(Text(file_path), {code, code == nullptr ? 0 : code_size}, Site(site));
}

libtrace_provenance* libtrace_provenance_new(void) {
  return Shielded([] { return new libtrace_provenance; });
}
void libtrace_provenance_pre_to_post(libtrace_provenance* provenance, const char* pre_grad_node,
                                     const char* post_grad_node) {
  if (provenance == nullptr) return;
  Shielded([&] { provenance->provenance.AddPreToPost(Text(pre_grad_node), Text(post_grad_node)); });
}
void libtrace_provenance_kernel_to_post(libtrace_provenance* provenance, const char* kernel,
                                        uint32_t debug_handle, const char* post_grad_node) {
  if (provenance == nullptr) return;
  Shielded([&] {
    provenance->provenance.AddKernelToPost(
        libtrace::Provenance::KernelCall(Text(kernel), debug_handle), Text(post_grad_node));
  });
}
void libtrace_provenance_stack_trace(libtrace_provenance* provenance, const char* kernel,
                                     uint32_t debug_handle, const char* traceback) {
  if (provenance == nullptr) return;
  Shielded([&] {
    provenance->provenance.AddStackTrace(
        libtrace::Provenance::KernelCall(Text(kernel), debug_handle), Text(traceback));
  });
}
void libtrace_provenance_emit(const libtrace_site* site, const libtrace_provenance* provenance) {
  if (provenance != nullptr) provenance->provenance.Emit(Site(site));
}
void libtrace_provenance_free(libtrace_provenance* provenance) { delete provenance; }

libtrace_execution_order* libtrace_execution_order_new(const libtrace_site* site,
                                                       int per_execution) {
  return Shielded([&] {
    libtrace::GraphExecutionOrder::Options options;
    options.per_execution = per_execution != 0;
    return new libtrace_execution_order(options, Site(site));
  });
}
void libtrace_execution_order_ran(libtrace_execution_order* order, int64_t frame_id,
                                  uint32_t frame_compile_id, const char* label,
                                  int64_t duration_ns) {
  if (order == nullptr) return;
  std::optional<libtrace::CompileId> id;
  if (frame_id >= 0 && frame_id <= UINT32_MAX) {
    id = libtrace::CompileId::Frame(static_cast<uint32_t>(frame_id), frame_compile_id);
  }
  std::optional<int64_t> duration;
  if (duration_ns >= 0) duration = duration_ns;
  order->order.Executed(id, Text(label), duration);
}
void libtrace_execution_order_free(libtrace_execution_order* order) { delete order; }

void libtrace_emit_collective_schedule(const libtrace_site* site, const char* const* ops,
                                       size_t op_count) {
  if (ops == nullptr || !libtrace::IsEnabled()) return;
  Shielded([&] {
    std::vector<std::optional<std::string>> names(op_count);
    for (size_t i = 0; i < op_count; ++i) {
      if (ops[i] != nullptr) names[i] = ops[i];
    }
    libtrace::EmitCollectiveSchedule(names, Site(site));
  });
}

void libtrace_emit_collective_log(const libtrace_site* site, const libtrace_collective* collectives,
                                  size_t collective_count) {
  if (collectives == nullptr || !libtrace::IsEnabled()) return;
  Shielded([&] {
    std::vector<libtrace::IssuedCollective> issued;
    for (size_t i = 0; i < collective_count; ++i) {
      issued.push_back(CollectiveOf(At(collectives, i)));
    }
    libtrace::EmitCollectiveLog(issued, Site(site));
  });
}

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
