// The C interface: graphs, generated code, provenance, executions, collectives and cache events.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/c_api_arguments.h"
#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/collective_log.h"
#include "libtrace/artifacts/collective_schedule.h"
#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/artifacts/run_digest.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/compile.h"
#include "libtrace/libtrace.h"
#include "libtrace/trace.h"

using libtrace::CallSite;
using namespace libtrace::c_api;  // NOLINT: its own helpers

struct libtrace_provenance {
  libtrace::Provenance provenance;
};
struct libtrace_run_digest {
  libtrace::RunDigest digest;
};
struct libtrace_execution_order {
  libtrace_execution_order(libtrace::GraphExecutionOrder::Options options, CallSite site_in)
      : site(site_in), order(options, site_in) {}
  const CallSite site;
  libtrace::GraphExecutionOrder order;
};

namespace {

// "" when tracing is off: a provenance that is added to then keeps nothing.
std::string KernelCallOf(const char* kernel, uint32_t debug_handle) {
  return libtrace::IsEnabled() ? libtrace::Provenance::KernelCall(Text(kernel), debug_handle)
                               : std::string();
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
  if (const auto id = Get<C, uint64_t>(c, &C::collective_seq_id, 0); id != 0)
    one.collective_seq_id = id;
  if (const auto id = Get<C, uint64_t>(c, &C::p2p_seq_id, 0); id != 0) one.p2p_seq_id = id;
  return one;
}

}  // namespace

extern "C" {

void libtrace_emit_graph_dump(const libtrace_site* site, const char* name, const char* type,
                              const char* filename, const char* text, size_t text_size) {
  libtrace::EmitGraphDump(Text(name), Text(type), Text(filename), Bytes(text, text_size),
                          Site(site));
}

void libtrace_emit_output_graph(const libtrace_site* site, const char* sizes, const char* text,
                                size_t text_size) {
  libtrace::Emit(
      libtrace::format::kDynamoOutputGraph,
      [&](libtrace::MetadataWriter& json) {
        json.BeginObject().Key("sizes").Json(sizes == nullptr ? "{}" : sizes);
        json.EndObject();
      },
      [&](libtrace::Payload& target) { target.Borrow(Bytes(text, text_size)); }, {}, Site(site));
}

void libtrace_emit_output_code(const libtrace_site* site, const char* file_path, const char* code,
                               size_t code_size) {
  libtrace::EmitOutputCode(Text(file_path), Bytes(code, code_size), Site(site));
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
    provenance->provenance.AddKernelToPost(KernelCallOf(kernel, debug_handle),
                                           Text(post_grad_node));
  });
}
void libtrace_provenance_stack_trace(libtrace_provenance* provenance, const char* kernel,
                                     uint32_t debug_handle, const char* traceback) {
  if (provenance == nullptr) return;
  Shielded([&] {
    provenance->provenance.AddStackTrace(KernelCallOf(kernel, debug_handle), Text(traceback));
  });
}
void libtrace_provenance_emit(const libtrace_site* site, const libtrace_provenance* provenance) {
  if (provenance != nullptr) provenance->provenance.Emit(Site(site));
}
void libtrace_provenance_free(libtrace_provenance* provenance) { delete provenance; }

libtrace_run_digest* libtrace_run_digest_new(const char* graph, uint64_t call) {
  if (!libtrace::IsEnabled()) return nullptr;
  return Shielded([&] { return new libtrace_run_digest{libtrace::RunDigest(Text(graph), call)}; });
}
void libtrace_run_digest_kernel(libtrace_run_digest* digest, const char* name, const char* code,
                                size_t code_size) {
  if (digest != nullptr) digest->digest.Kernel(Text(name), Bytes(code, code_size));
}
void libtrace_run_digest_choice(libtrace_run_digest* digest, const char* name, const char* choice) {
  if (digest != nullptr) digest->digest.Choice(Text(name), Text(choice));
}
void libtrace_run_digest_output(libtrace_run_digest* digest, const char* name, const char* type,
                                const void* bytes, size_t size_bytes) {
  if (digest != nullptr) digest->digest.Output(Text(name), Text(type), Bytes(bytes, size_bytes));
}
void libtrace_run_digest_emit(const libtrace_site* site, const libtrace_run_digest* digest) {
  if (digest != nullptr) digest->digest.Emit(Site(site));
}
void libtrace_run_digest_free(libtrace_run_digest* digest) { delete digest; }

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
  if (order == nullptr || !libtrace::IsEnabled()) return;
  std::optional<libtrace::CompileId> id;
  if (frame_id >= 0 && frame_id <= UINT32_MAX) {
    id = libtrace::CompileId::Frame(static_cast<uint32_t>(frame_id), frame_compile_id);
  }
  std::optional<int64_t> duration;
  if (duration_ns >= 0) duration = duration_ns;
  order->order.Executed(id, Text(label), duration, order->site);
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

void libtrace_emit_collective_state(const libtrace_site* site, const char* process_group,
                                    uint64_t sequence_number, int64_t duration_ns) {
  if (!libtrace::IsEnabled()) return;
  Shielded([&] {
    libtrace::CollectiveState state;
    state.process_group = Text(process_group);
    state.sequence_number = sequence_number;
    state.duration_ns = static_cast<double>(duration_ns);
    libtrace::EmitCollectiveState(state, Site(site));
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
    libtrace::CacheKeyBuilder key("k");
    key.AddContent(Text(name), Text(text), Bytes(content, content_size));
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
