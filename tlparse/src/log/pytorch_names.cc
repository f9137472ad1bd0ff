// Each list is sorted as a person would look it up. Names of other versions are added as they are
// seen: `tlparse import-log --unknown` on a log of that version prints those that are missing.
#include "log/pytorch_names.h"

#include <algorithm>

namespace tlparse {
namespace {

constexpr PytorchName kPhases[] = {
    {"_recursive_joint_graph_passes", "2.6, 2.14"},
    {"_recursive_post_grad_passes", "2.6, 2.14"},
    {"_recursive_pre_grad_passes", "2.6, 2.14"},
    {"additional_fake_tensor_prop", "2.14"},
    {"aot_collect_metadata", "2.14"},
    {"aot_trace_joint_graph", "2.14"},
    {"AOTAutogradCache.inductor_load", "2.14"},
    {"AotCodeCompiler.compile", "2.6, 2.14"},
    {"aoti_precompile_header", "2.14"},
    {"aoti_serialize_constants", "2.14"},
    {"async_compile.wait", "2.6, 2.14"},
    {"automatic_dynamic", "2.6, 2.14"},
    {"backend_compile", "2.6, 2.14"},
    {"backward no-op", "2.14"},
    {"build_guards", "2.14"},
    {"bytecode_tracing", "2.14"},
    {"CacheBase.get_system.triton_key", "2.14"},
    {"code_gen", "2.6, 2.14"},
    {"compile_attempt_*", "2.14"},
    {"compile_file", "2.6, 2.14"},
    {"compile_fx.<locals>.bw_compiler", "2.6, 2.14"},
    {"compile_fx.<locals>.fw_compiler_base", "2.6, 2.14"},
    {"compile_fx_aot", "2.14"},
    {"CppWrapperCpu.generate", "2.6, 2.14"},
    {"create_aot_dispatcher_function", "2.6, 2.14"},
    {"dynamo", "2.6, 2.14"},
    {"entire_backward_compile", "2.6, 2.14"},
    {"entire_frame_compile", "2.6, 2.14"},
    {"fullgraph_capture", "2.14"},
    {"fx_codegen_and_compile", "2.14"},
    {"gc", "2.14"},
    {"GraphLowering.codegen", "2.6, 2.14"},
    {"GraphLowering.compile_to_fn", "2.6, 2.14"},
    {"GraphLowering.run", "2.6, 2.14"},
    {"inductor_codecache_torch_key", "2.6, 2.14"},
    {"inductor_compile", "2.6, 2.14"},
    {"insert_deferred_runtime_asserts", "2.14"},
    {"min_cut_rematerialization_partition", "2.14"},
    {"pass.*", "2.14"},
    {"pgo.dynamic_whitelist", "2.14"},
    {"PyCodeCache.load_by_key_path", "2.6, 2.14"},
    {"PythonWrapperCodegen.generate", "2.6, 2.14"},
    {"run_command_and_check", "2.6"},
    {"Scheduler.__init__", "2.6, 2.14"},
    {"Scheduler.codegen", "2.6, 2.14"},
    {"Scheduler.fused_nodes", "2.6, 2.14"},
    {"Scheduler.simple_overlap", "2.14"},
    {"TritonBundler.collect", "2.6, 2.14"},
    {"TritonBundler.read_and_emit", "2.14"},
    {"libtrace_compile", "libtrace"},
    {"libtrace_torchscript_optimize", "libtrace"},
    {"*_cache_bypass", "2.6, 2.14"},
    {"*_cache_disabled", "2.6, 2.14"},
    {"*_cache_hit", "2.6, 2.14"},
    {"*_cache_miss", "2.6, 2.14"},
};

// Without the part in brackets: inductor_config[max_fusion_size]. Some appear in a log only where a
// program uses them; they are in the sources of the versions named.
constexpr PytorchName kComponents[] = {
    {"_custom_partitioner_fn", "2.14", ComponentSubject::kConfig},
    {"_fuse_ddp_communication_passes", "2.14", ComponentSubject::kConfig},
    {"_post_fusion_custom_pass", "2.14", ComponentSubject::kConfig},
    {"_pre_fusion_custom_pass", "2.14", ComponentSubject::kConfig},
    {"act_input_paths", "2.14"},
    {"aot_config", "2.6", ComponentSubject::kConfig},
    {"autocast_state", "2.14", ComponentSubject::kSetting},
    {"autograd_config", "2.6", ComponentSubject::kConfig},
    {"cache_key_tag", "2.6, 2.14", ComponentSubject::kSetting},
    {"compile_on_one_rank", "2.14", ComponentSubject::kConfig},
    {"cpp_runtime_thread_count", "2.14", ComponentSubject::kSetting},
    {"cuda_matmul_settings", "2.6, 2.14", ComponentSubject::kSetting},
    {"cudagraph_override", "2.14", ComponentSubject::kConfig},
    {"custom_backend_codegen_configs", "2.14", ComponentSubject::kConfig},
    {"custom_backend_passes", "2.14", ComponentSubject::kConfig},
    {"custom_estimator_solver_uuids", "2.14"},
    {"default_dtype", "2.14", ComponentSubject::kSetting},
    {"deterministic_algorithms", "2.6", ComponentSubject::kSetting},
    {"deterministic_algorithms_settings", "2.6, 2.14", ComponentSubject::kSetting},
    {"disable_amp", "2.6", ComponentSubject::kSetting},
    {"example_inputs", "2.6, 2.14", ComponentSubject::kInputs},
    {"fx_kwargs", "2.6, 2.14", ComponentSubject::kConfig},
    {"gm", "2.6, 2.14", ComponentSubject::kGraph},
    {"grad_enabled", "2.6", ComponentSubject::kSetting},
    {"inductor_config", "2.6, 2.14", ComponentSubject::kConfig},
    {"inductor_config_comms", "2.14", ComponentSubject::kConfig},
    {"inputs_to_check", "2.6, 2.14", ComponentSubject::kInputs},
    {"joint_custom_post_pass", "2.14", ComponentSubject::kConfig},
    {"joint_custom_pre_pass", "2.14", ComponentSubject::kConfig},
    {"nested_inductor_config_patches", "2.14", ComponentSubject::kConfig},
    {"post_grad_custom_post_pass", "2.6, 2.14", ComponentSubject::kConfig},
    {"post_grad_custom_pre_pass", "2.6, 2.14", ComponentSubject::kConfig},
    {"pre_grad_custom_pass", "2.14", ComponentSubject::kConfig},
    {"precompile_enabled", "2.14", ComponentSubject::kConfig},
    {"provenance_tracking_level", "2.14", ComponentSubject::kConfig},
    {"provenance_tracking_to_timeline", "2.14", ComponentSubject::kConfig},
    {"region_activation_memory_budget", "2.14"},
    {"sac_context_fn_hashes", "2.14"},
    {"saved_tensors_hooks_fx_wrap_cache_hashes", "2.14", ComponentSubject::kSetting},
    {"system_info", "2.6, 2.14", ComponentSubject::kBuild},
    {"torch_version", "2.6, 2.14", ComponentSubject::kBuild},
    {"triton_kernel_source_codes", "2.14", ComponentSubject::kGraph},
    {"user_defined_triton_source", "2.6, 2.14", ComponentSubject::kGraph},
    {"var_to_hint_override", "2.14", ComponentSubject::kInputs},
    {"var_to_hint_overrides", "2.14", ComponentSubject::kInputs},
    {"compiler", "libtrace", ComponentSubject::kBuild},
    {"cpu_capability", "libtrace", ComponentSubject::kBuild},
    {"cpu_features", "libtrace", ComponentSubject::kBuild},
    {"gpu_architectures", "libtrace", ComponentSubject::kBuild},
    {"inputs", "libtrace"},
    {"libtorch_build", "libtrace", ComponentSubject::kBuild},
    {"model_name", "libtrace"},
    {"name", "libtrace"},
    {"options", "libtrace", ComponentSubject::kConfig},
    {"source", "libtrace"},
};

constexpr PytorchName kMetrics[] = {
    {"accumulated_cache_size", "2.6, 2.14"},
    {"aot_autograd_cumulative_compile_time_us", "2.6, 2.14"},
    {"aotautograd_local_cache_hit_count", "2.14"},
    {"aotautograd_local_cache_miss_count", "2.14"},
    {"aotautograd_remote_cache_hit_count", "2.14"},
    {"aotautograd_remote_cache_miss_count", "2.14"},
    {"backend_compile_time_s", "2.6, 2.14"},
    {"backward_cumulative_compile_time_us", "2.6, 2.14"},
    {"cache_size", "2.6, 2.14"},
    {"co_filename", "2.6, 2.14"},
    {"co_firstlineno", "2.6, 2.14"},
    {"co_name", "2.6, 2.14"},
    {"code_gen_time_s", "2.6, 2.14"},
    {"compile_id", "2.6, 2.14"},
    {"compile_time_autotune_time_us", "2.14"},
    {"compiler_config", "2.14"},
    {"compliant_custom_ops", "2.6, 2.14"},
    {"config_inline_inbuilt_nn_modules", "2.6, 2.14"},
    {"config_suppress_errors", "2.6, 2.14"},
    {"cuda_synchronize_time_us", "2.6"},
    {"cuda_version", "2.6, 2.14"},
    {"cudagraph_skip_reason", "2.14"},
    {"distributed_ephemeral_timeout_us", "2.6, 2.14"},
    {"duration_us", "2.6, 2.14"},
    {"dynamo_compile_time_before_restart_us", "2.6, 2.14"},
    {"dynamo_config", "2.6, 2.14"},
    {"dynamo_cumulative_compile_time_us", "2.6, 2.14"},
    {"dynamo_time_before_restart_s", "2.6, 2.14"},
    {"end_time_us", "2.6, 2.14"},
    {"entire_frame_compile_time_s", "2.6, 2.14"},
    {"exception_stack_trace", "2.14"},
    {"fail_reason", "2.6, 2.14"},
    {"fail_type", "2.6, 2.14"},
    {"fail_user_frame_filename", "2.6, 2.14"},
    {"fail_user_frame_lineno", "2.6, 2.14"},
    {"feature_usage", "2.6, 2.14"},
    {"frame_key", "2.6, 2.14"},
    {"functorch_config", "2.14"},
    {"gc_time_us", "2.14"},
    {"graph_input_count", "2.6, 2.14"},
    {"graph_node_count", "2.6, 2.14"},
    {"graph_node_shapes", "2.14"},
    {"graph_op_count", "2.6, 2.14"},
    {"guard_count", "2.6, 2.14"},
    {"guard_latency_us", "2.14"},
    {"has_guarded_code", "2.6, 2.14"},
    {"inductor_code_gen_cumulative_compile_time_us", "2.6, 2.14"},
    {"inductor_compile_time_s", "2.6, 2.14"},
    {"inductor_config", "2.6, 2.14"},
    {"inductor_cumulative_compile_time_us", "2.6, 2.14"},
    {"inductor_fx_local_cache_hit_count", "2.14"},
    {"inductor_fx_local_cache_miss_count", "2.14"},
    {"inductor_fx_remote_cache_backend_type", "2.6, 2.14"},
    {"inductor_fx_remote_cache_hit_count", "2.6, 2.14"},
    {"inductor_fx_remote_cache_hit_keys", "2.6, 2.14"},
    {"inductor_fx_remote_cache_miss_count", "2.6, 2.14"},
    {"inductor_fx_remote_cache_miss_keys", "2.6, 2.14"},
    {"inductor_provenance", "2.14"},
    {"inline_inbuilt_nn_modules_candidate", "2.14"},
    {"ir_count", "2.14"},
    {"is_forward", "2.6, 2.14"},
    {"is_runtime", "2.14"},
    {"joint_graph_pass_time_us", "2.6, 2.14"},
    {"log_format_version", "2.6, 2.14"},
    {"non_compliant_ops", "2.6, 2.14"},
    {"num_graph_breaks", "2.14"},
    {"num_triton_bundles", "2.6, 2.14"},
    {"param_bytes", "2.14"},
    {"param_count", "2.14"},
    {"param_numel", "2.14"},
    {"pgo_get_remote_code_state_time_us", "2.14"},
    {"pgo_put_remote_code_state_time_us", "2.14"},
    {"post_grad_pass_time_us", "2.6, 2.14"},
    {"pre_grad_pass_time_us", "2.6, 2.14"},
    {"python_version", "2.14"},
    {"pytorch_version", "2.14"},
    {"recompile_reason", "2.14"},
    {"recompile_user_contexts", "2.14"},
    {"remote_cache_time_saved_s", "2.6, 2.14"},
    {"remote_cache_version", "2.6, 2.14"},
    {"remote_fx_graph_cache_get_time_ms", "2.6, 2.14"},
    {"remote_fx_graph_cache_get_time_us", "2.6, 2.14"},
    {"remote_fx_graph_cache_put_time_ms", "2.6, 2.14"},
    {"remote_fx_graph_cache_put_time_us", "2.6, 2.14"},
    {"restart_reasons", "2.6, 2.14"},
    {"runtime_cudagraphify_time_us", "2.6, 2.14"},
    {"runtime_triton_autotune_time_us", "2.6, 2.14"},
    {"shape_env_guard_count", "2.6, 2.14"},
    {"specialize_float", "2.6, 2.14"},
    {"stack_trace", "2.14"},
    {"start_time", "2.6, 2.14"},
    {"start_time_us", "2.6, 2.14"},
    {"structured_logging_overhead_s", "2.6, 2.14"},
    {"structured_logging_overhead_us", "2.6, 2.14"},
    {"tensorify_float_attempt", "2.14"},
    {"tensorify_float_failure", "2.14"},
    {"tensorify_float_success", "2.14"},
    {"triton_compile_time_us", "2.6, 2.14"},
    {"triton_kernel_compile_times_us", "2.14"},
    {"triton_version", "2.6, 2.14"},
};

bool Matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) &&
         name.ends_with(pattern.substr(star + 1));
}

}  // namespace

std::span<const PytorchName> KnownNames(PytorchNameKind kind) {
  switch (kind) {
    case PytorchNameKind::kPhase:
      return kPhases;
    case PytorchNameKind::kComponent:
      return kComponents;
    case PytorchNameKind::kMetric:
      return kMetrics;
  }
  return {};
}

const PytorchName* FindKnownName(PytorchNameKind kind, std::string_view name) {
  const std::span<const PytorchName> names = KnownNames(kind);
  const auto found = std::find_if(names.begin(), names.end(), [&](const PytorchName& known) {
    return Matches(known.name, name);
  });
  return found == names.end() ? nullptr : &*found;
}

ComponentSubject SubjectOfComponent(std::string_view name) {
  using enum ComponentSubject;
  if (name.starts_with("fx_kwargs[static_input_idxs]")) return kInputs;
  // Set by the inputs that require gradients, and by the grad mode.
  if (name.starts_with("fx_kwargs[is_inference]")) return kInputs;
  const std::string_view base = name.substr(0, name.find('['));
  if (const PytorchName* known = FindKnownName(PytorchNameKind::kComponent, base))
    return known->subject;
  for (const std::string_view end : {"_custom_pre_pass", "_custom_post_pass", "config", "options"})
    if (base.ends_with(end)) return kConfig;
  return kOther;
}

}  // namespace tlparse
