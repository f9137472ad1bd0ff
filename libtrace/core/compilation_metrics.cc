#include "libtrace/compilation_metrics.h"

#include "libtrace/log_format.h"
#include "libtrace/scope.h"

namespace libtrace {
namespace {

constexpr int kLogFormatVersion = 3;

std::optional<double> Seconds(const std::optional<int64_t>& us) {
  if (!us) return std::nullopt;
  return static_cast<double>(*us) / 1e6;
}

void WriteNulls(JsonWriter& json, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) json.Key(name).Null();
}

// The groups follow PyTorch's dataclass; what a C++ program cannot know is null.
void WriteFrame(JsonWriter& json, const CompilationMetrics& m) {
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
  json.Field("guard_count", m.guard_count).Key("shape_env_guard_count").Null();
  json.Field("graph_op_count", m.graph_op_count).Field("graph_node_count", m.graph_node_count);
  json.Field("graph_input_count", m.graph_input_count)
      .Field("start_time", Seconds(m.start_time_us));
  json.Field("entire_frame_compile_time_s", Seconds(m.duration_us));
  json.Field("backend_compile_time_s", Seconds(m.backend_compile_time_us));
  json.Field("inductor_compile_time_s", Seconds(m.inductor_cumulative_compile_time_us));
  json.Field("code_gen_time_s", Seconds(m.inductor_code_gen_cumulative_compile_time_us));
}

void WriteOutcome(JsonWriter& json, const CompilationMetrics& m) {
  json.Field("fail_type", m.fail_type).Field("fail_reason", m.fail_reason);
  json.Field("fail_user_frame_filename", m.fail_user_frame_filename);
  json.Field("fail_user_frame_lineno", m.fail_user_frame_lineno);
  WriteNulls(json, {"non_compliant_ops", "compliant_custom_ops"});
  json.Field("restart_reasons", m.restart_reasons);
  json.Field("dynamo_time_before_restart_s", m.dynamo_time_before_restart_s);
  json.Field("stack_trace", m.stack_trace).Field("exception_stack_trace", m.exception_stack_trace);
  json.Key("graph_node_shapes").Null().Field("has_guarded_code", m.has_guarded_code);
  WriteNulls(
      json, {"remote_cache_time_saved_s", "structured_logging_overhead_s", "config_suppress_errors",
             "config_inline_inbuilt_nn_modules", "specialize_float", "dynamo_config"});
  json.Field("compiler_config", m.compiler_config);
  json.Key("is_forward").Value(m.is_forward).Key("num_triton_bundles").Null();
  WriteNulls(json, {"remote_fx_graph_cache_get_time_ms", "remote_fx_graph_cache_put_time_ms"});
  json.Field("start_time_us", m.start_time_us).Field("duration_us", m.duration_us);
}

void WriteTimes(JsonWriter& json, const CompilationMetrics& m) {
  json.Field("dynamo_cumulative_compile_time_us", m.duration_us);
  json.Key("aot_autograd_cumulative_compile_time_us").Null();
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
  WriteNulls(json, {"pre_grad_pass_time_us", "post_grad_pass_time_us", "joint_graph_pass_time_us"});
  json.Field("log_format_version", kLogFormatVersion);
  json.Field("inductor_config", m.inductor_config).Key("remote_cache_version").Null();
}

void WriteCaches(JsonWriter& json, const CompilationMetrics& m) {
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

void WriteRest(JsonWriter& json, const CompilationMetrics& m) {
  json.Field("cuda_version", m.cuda_version).Key("triton_version").Null();
  json.Field("feature_usage", m.feature_usage);
  WriteNulls(json, {"compile_time_autotune_time_us", "gc_time_us"});
  json.Field("is_runtime", m.is_runtime);
  WriteNulls(json,
             {"tensorify_float_attempt", "tensorify_float_success", "tensorify_float_failure"});
  json.Field("guard_latency_us", m.guard_latency_us).Key("recompile_user_contexts").Null();
  json.Field("recompile_reason", m.recompile_reason).Field("num_graph_breaks", m.num_graph_breaks);
  json.Key("triton_kernel_compile_times_us").Null().Field("ir_count", m.ir_count);
  WriteNulls(json, {"cudagraph_skip_reason", "python_version", "pytorch_version",
                    "pgo_put_remote_code_state_time_us", "pgo_get_remote_code_state_time_us"});
  json.Field("param_numel", m.param_numel).Field("param_bytes", m.param_bytes);
  json.Field("param_count", m.param_count).Field("inline_inbuilt_nn_modules_candidate", false);
  WriteNulls(json, {"functorch_config", "inductor_provenance"});
}

}  // namespace

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
        WriteFrame(json, metrics);
        WriteOutcome(json, metrics);
        WriteTimes(json, metrics);
        WriteCaches(json, metrics);
        WriteRest(json, metrics);
        json.EndObject();
      },
      {}, location);
}

}  // namespace libtrace
