// Record kinds and artifacts that need no table: a text or a JSON for people, read through the view
// `artifact`. They are listed so that only what is really new is reported as unknown. Grouped by the
// part of the compiler that writes them.
#include "artifacts/artifact.h"

namespace tlparse {
namespace {

class KnownArtifacts final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}
  Result<void> Ingest(const Record&, IngestContext&) override { return {}; }
};

}  // namespace

TLPARSE_ARTIFACT(
    known_artifact, KnownArtifacts,
    // Records.
    StandsAlone("dump_file"), StandsAlone("link"), "export", "memoizer_artifacts",
    // Process and environment.
    StandsAlone("artifact/compile_worker_status"),
    StandsAlone("artifact/compile_worker_sidecar_death"), "artifact/torch._functorch.config",
    StandsAlone("artifact/native_dsl_compile"),
    // Dynamo.
    "artifact/compiler_collective", "artifact/get_*_code_state", "artifact/put_*_code_state",
    "artifact/add_*_code_state", "artifact/dynamo_side_effects", "artifact/guard_collective",
    "artifact/*_ORIGINAL_BYTECODE", "artifact/*_MODIFIED_BYTECODE",
    "artifact/compiled_autograd_compile_reasons",
    // AOTAutograd.
    "artifact/aotautograd_cache_pickle_failure", "artifact/aot_forward_graph_fw_metadata",
    "artifact/aot_forward_graph_fw_subclass_metadata", "artifact/min_cut_information",
    "artifact/min_cut_failed_*", "artifact/aot_joint_graph_sync_decision_cross_ranks",
    "artifact/invoke_subgraph_backward_duplicate", "artifact/runtime_wrapper_orchestration",
    "artifact/output_alias_wrapper", "artifact/mutation_epilogue",
    "artifact/functionalized_rng_wrapper", "artifact/effect_tokens_wrapper",
    "artifact/dedup_wrapper", "artifact/synthetic_base_wrapper", "artifact/backward_prologue",
    "artifact/backward_epilogue", "artifact/compiled_function_forward",
    "artifact/compiled_function_backward", "artifact/compiled_fn_wrapper",
    "artifact/debug_assert_wrapper", "artifact/backward_subclass_unwrap",
    "artifact/backward_subclass_wrapper", "artifact/subclass_wrapper",
    "artifact/aot_autograd_runtime_wrappers",
    // Inductor.
    "artifact/fx_net_acc_splitter_finder_events", "artifact/flex_gemm_*", "artifact/*_fused",
    // Distributed passes.
    "artifact/pre_bucketing_collective_sizes", "artifact/pre_bucketing_collective_sizes_after",
    "artifact/pre_bucketing_fsdp_collectives", "artifact/fx_bucketing_passes_*",
    "artifact/inductor_fx_passes_overlap_bucketing", "artifact/fusion_regions_*",
    "artifact/scheduler_nodes_before_comm_overlap",
    "artifact/reorder_communication_preserving_peak_memory", "artifact/sink_waits_iterative_info",
    "artifact/*_ITERATIVE_RECOMPUTE_ERROR", "artifact/inductor_overlap_cyclic_extra_deps",
    "artifact/fx_compute_nodes_runtime_estimation",
    "artifact/fx_collectives_node_runtime_estimation",
    "artifact/fx_collectives_analytical_estimation", "artifact/pge_profile_vs_analytical",
    "artifact/inductor_spmd_graph_mismatch",
    // Outside of PyTorch.
    "artifact/vllm_*")

}  // namespace tlparse
