#include "libtrace/compilation_metrics.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/errno_scope.h"
#include "libtrace/log_format.h"
#include "libtrace/scope.h"

namespace libtrace {
namespace {

constexpr int kLogFormatVersion = 3;

std::optional<double> Seconds(const std::optional<int64_t>& us) {
  if (!us) return std::nullopt;
  return static_cast<double>(*us) / 1e6;
}

// Every member that is written, in that order.
constexpr std::string_view kMembers[] = {
    "compile_id",
    "frame_key",
    "co_name",
    "co_filename",
    "co_firstlineno",
    "cache_size",
    "accumulated_cache_size",
    "guard_count",
    "shape_env_guard_count",
    "graph_op_count",
    "graph_node_count",
    "graph_input_count",
    "start_time",
    "entire_frame_compile_time_s",
    "backend_compile_time_s",
    "inductor_compile_time_s",
    "code_gen_time_s",
    "fail_type",
    "fail_reason",
    "fail_user_frame_filename",
    "fail_user_frame_lineno",
    "non_compliant_ops",
    "compliant_custom_ops",
    "restart_reasons",
    "dynamo_time_before_restart_s",
    "stack_trace",
    "exception_stack_trace",
    "graph_node_shapes",
    "has_guarded_code",
    "remote_cache_time_saved_s",
    "structured_logging_overhead_s",
    "config_suppress_errors",
    "config_inline_inbuilt_nn_modules",
    "specialize_float",
    "dynamo_config",
    "compiler_config",
    "is_forward",
    "num_triton_bundles",
    "remote_fx_graph_cache_get_time_ms",
    "remote_fx_graph_cache_put_time_ms",
    "start_time_us",
    "duration_us",
    "dynamo_cumulative_compile_time_us",
    "aot_autograd_cumulative_compile_time_us",
    "inductor_cumulative_compile_time_us",
    "inductor_code_gen_cumulative_compile_time_us",
    "triton_compile_time_us",
    "runtime_cudagraphify_time_us",
    "runtime_triton_autotune_time_us",
    "dynamo_compile_time_before_restart_us",
    "distributed_ephemeral_timeout_us",
    "structured_logging_overhead_us",
    "remote_fx_graph_cache_get_time_us",
    "remote_fx_graph_cache_put_time_us",
    "backward_cumulative_compile_time_us",
    "end_time_us",
    "pre_grad_pass_time_us",
    "post_grad_pass_time_us",
    "joint_graph_pass_time_us",
    "log_format_version",
    "inductor_config",
    "remote_cache_version",
    "inductor_fx_local_cache_hit_count",
    "inductor_fx_local_cache_miss_count",
    "inductor_fx_remote_cache_hit_count",
    "inductor_fx_remote_cache_miss_count",
    "inductor_fx_remote_cache_backend_type",
    "inductor_fx_remote_cache_hit_keys",
    "inductor_fx_remote_cache_miss_keys",
    "aotautograd_local_cache_hit_count",
    "aotautograd_local_cache_miss_count",
    "aotautograd_remote_cache_hit_count",
    "aotautograd_remote_cache_miss_count",
    "cuda_version",
    "triton_version",
    "feature_usage",
    "compile_time_autotune_time_us",
    "gc_time_us",
    "is_runtime",
    "tensorify_float_attempt",
    "tensorify_float_success",
    "tensorify_float_failure",
    "guard_latency_us",
    "recompile_user_contexts",
    "recompile_reason",
    "num_graph_breaks",
    "triton_kernel_compile_times_us",
    "ir_count",
    "cudagraph_skip_reason",
    "python_version",
    "pytorch_version",
    "pgo_put_remote_code_state_time_us",
    "pgo_get_remote_code_state_time_us",
    "param_numel",
    "param_bytes",
    "param_count",
    "inline_inbuilt_nn_modules_candidate",
    "functorch_config",
    "inductor_provenance",
};

// Writes members; what was set by name wins.
class MemberWriter {
 public:
  MemberWriter(JsonWriter& json, const CompilationMetrics& metrics)
      : json_(json), by_name_(metrics.by_name) {}

  template <class T>
  MemberWriter& Field(std::string_view name, const T& value) {
    json_.Key(name);
    const auto set = by_name_.empty() ? by_name_.end() : by_name_.find(name);
    if (set != by_name_.end()) {
      json_.Json(set->second);
    } else {
      json_.Value(value);
    }
    return *this;
  }
  MemberWriter& Null(std::string_view name) { return Field(name, nullptr); }

 private:
  JsonWriter& json_;
  const std::map<std::string, std::string, std::less<>>& by_name_;
};

void WriteNulls(MemberWriter& json, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) json.Null(name);
}

// The groups follow PyTorch's dataclass; what a C++ program cannot know is null.
void WriteFrame(MemberWriter& json, const CompilationMetrics& m) {
  const CompileId& current = CurrentContext().compile_id;
  if (m.compile_id || current.empty()) {
    json.Field("compile_id", m.compile_id);
  } else {
    json.Field("compile_id", ToString(current));
  }
  if (m.frame_key || !current.frame_id) {
    json.Field("frame_key", m.frame_key);
  } else {
    json.Field("frame_key", std::to_string(*current.frame_id));
  }
  json.Field("co_name", m.co_name).Field("co_filename", m.co_filename);
  json.Field("co_firstlineno", m.co_firstlineno).Field("cache_size", m.cache_size);
  json.Field("accumulated_cache_size", m.accumulated_cache_size);
  json.Field("guard_count", m.guard_count).Null("shape_env_guard_count");
  json.Field("graph_op_count", m.graph_op_count).Field("graph_node_count", m.graph_node_count);
  json.Field("graph_input_count", m.graph_input_count)
      .Field("start_time", Seconds(m.start_time_us));
  json.Field("entire_frame_compile_time_s", Seconds(m.duration_us));
  json.Field("backend_compile_time_s", Seconds(m.backend_compile_time_us));
  json.Field("inductor_compile_time_s", Seconds(m.inductor_cumulative_compile_time_us));
  json.Field("code_gen_time_s", Seconds(m.inductor_code_gen_cumulative_compile_time_us));
}

void WriteOutcome(MemberWriter& json, const CompilationMetrics& m) {
  json.Field("fail_type", m.fail_type).Field("fail_reason", m.fail_reason);
  json.Field("fail_user_frame_filename", m.fail_user_frame_filename);
  json.Field("fail_user_frame_lineno", m.fail_user_frame_lineno);
  WriteNulls(json, {"non_compliant_ops", "compliant_custom_ops"});
  json.Field("restart_reasons", m.restart_reasons);
  json.Field("dynamo_time_before_restart_s", m.dynamo_time_before_restart_s);
  json.Field("stack_trace", m.stack_trace).Field("exception_stack_trace", m.exception_stack_trace);
  json.Null("graph_node_shapes").Field("has_guarded_code", m.has_guarded_code);
  WriteNulls(
      json, {"remote_cache_time_saved_s", "structured_logging_overhead_s", "config_suppress_errors",
             "config_inline_inbuilt_nn_modules", "specialize_float", "dynamo_config"});
  json.Field("compiler_config", m.compiler_config);
  json.Field("is_forward", m.is_forward).Null("num_triton_bundles");
  WriteNulls(json, {"remote_fx_graph_cache_get_time_ms", "remote_fx_graph_cache_put_time_ms"});
  json.Field("start_time_us", m.start_time_us).Field("duration_us", m.duration_us);
}

void WriteTimes(MemberWriter& json, const CompilationMetrics& m) {
  json.Field("dynamo_cumulative_compile_time_us", m.duration_us);
  json.Null("aot_autograd_cumulative_compile_time_us");
  json.Field("inductor_cumulative_compile_time_us", m.inductor_cumulative_compile_time_us);
  json.Field("inductor_code_gen_cumulative_compile_time_us",
             m.inductor_code_gen_cumulative_compile_time_us);
  WriteNulls(json, {"triton_compile_time_us", "runtime_cudagraphify_time_us"});
  json.Field("runtime_triton_autotune_time_us", m.runtime_triton_autotune_time_us);
  WriteNulls(json, {"dynamo_compile_time_before_restart_us", "distributed_ephemeral_timeout_us"});
  json.Field("structured_logging_overhead_us", m.structured_logging_overhead_us);
  WriteNulls(json, {"remote_fx_graph_cache_get_time_us", "remote_fx_graph_cache_put_time_us",
                    "backward_cumulative_compile_time_us"});
  json.Field("end_time_us", m.end_time_us);
  json.Field("pre_grad_pass_time_us", m.pre_grad_pass_time_us);
  json.Field("post_grad_pass_time_us", m.post_grad_pass_time_us);
  json.Field("joint_graph_pass_time_us", m.joint_graph_pass_time_us);
  json.Field("log_format_version", kLogFormatVersion);
  json.Field("inductor_config", m.inductor_config).Null("remote_cache_version");
}

void WriteCaches(MemberWriter& json, const CompilationMetrics& m) {
  json.Field("inductor_fx_local_cache_hit_count", m.inductor_fx_local_cache_hit_count);
  json.Field("inductor_fx_local_cache_miss_count", m.inductor_fx_local_cache_miss_count);
  json.Field("inductor_fx_remote_cache_hit_count", m.inductor_fx_remote_cache_hit_count);
  json.Field("inductor_fx_remote_cache_miss_count", m.inductor_fx_remote_cache_miss_count);
  WriteNulls(json, {"inductor_fx_remote_cache_backend_type", "inductor_fx_remote_cache_hit_keys",
                    "inductor_fx_remote_cache_miss_keys"});
  json.Field("aotautograd_local_cache_hit_count", m.aotautograd_local_cache_hit_count);
  json.Field("aotautograd_local_cache_miss_count", m.aotautograd_local_cache_miss_count);
  json.Field("aotautograd_remote_cache_hit_count", m.aotautograd_remote_cache_hit_count);
  json.Field("aotautograd_remote_cache_miss_count", m.aotautograd_remote_cache_miss_count);
}

void WriteRest(MemberWriter& json, const CompilationMetrics& m) {
  json.Field("cuda_version", m.cuda_version).Null("triton_version");
  json.Field("feature_usage", m.feature_usage);
  WriteNulls(json, {"compile_time_autotune_time_us", "gc_time_us"});
  json.Field("is_runtime", m.is_runtime);
  WriteNulls(json,
             {"tensorify_float_attempt", "tensorify_float_success", "tensorify_float_failure"});
  json.Field("guard_latency_us", m.guard_latency_us).Null("recompile_user_contexts");
  json.Field("recompile_reason", m.recompile_reason).Field("num_graph_breaks", m.num_graph_breaks);
  json.Null("triton_kernel_compile_times_us").Field("ir_count", m.ir_count);
  WriteNulls(json, {"cudagraph_skip_reason", "python_version", "pytorch_version",
                    "pgo_put_remote_code_state_time_us", "pgo_get_remote_code_state_time_us"});
  json.Field("param_numel", m.param_numel).Field("param_bytes", m.param_bytes);
  json.Field("param_count", m.param_count).Field("inline_inbuilt_nn_modules_candidate", false);
  WriteNulls(json, {"functorch_config", "inductor_provenance"});
}

}  // namespace

bool CompilationMetrics::SetJson(std::string_view name, std::string_view json) noexcept {
  const detail::ErrnoScope keeps_errno;
  try {
    if (std::find(std::begin(kMembers), std::end(kMembers), name) == std::end(kMembers))
      return false;
    std::string normalized;
    if (!AppendNormalizedJson(json, JsonStyle::kOneLine, normalized)) return false;
    by_name.insert_or_assign(std::string(name), std::move(normalized));
    return true;
  } catch (...) {
    return false;
  }
}

bool CompilationMetrics::SetBuilt(std::string_view name,
                                  FunctionRef<void(JsonWriter&)> write) noexcept {
  const detail::ErrnoScope keeps_errno;
  try {
    std::string text;
    JsonWriter json(text);
    write(json);
    return SetJson(name, text);
  } catch (...) {
    return false;
  }
}

void EmitCompilationMetrics(const CompilationMetrics& metrics, CallSite location) noexcept {
  if (!IsEnabled()) return;
  const bool is_backward = metrics.is_forward.has_value() && !*metrics.is_forward;
  constexpr std::string_view kKeys[2][2] = {
      {"compilation_metrics", "compilation_metrics_runtime"},
      {"bwd_compilation_metrics", "bwd_compilation_metrics_runtime"}};
  Emit(
      kKeys[is_backward ? 1 : 0][metrics.is_runtime ? 1 : 0],
      [&](MetadataWriter& json) {
        json.BeginObject();
        MemberWriter members(json, metrics);
        WriteFrame(members, metrics);
        WriteOutcome(members, metrics);
        WriteTimes(members, metrics);
        WriteCaches(members, metrics);
        WriteRest(members, metrics);
        json.EndObject();
      },
      {}, location);
}

}  // namespace libtrace
