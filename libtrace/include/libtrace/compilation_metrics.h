// compilation_metrics: the one record per compile that says how long it took and how it ended.
//
// Members, order and meaning are PyTorch's (torch/_dynamo/utils.py, class CompilationMetrics
// of 2.14, log_format_version 3); all of them are written, null where nothing was set. The fields
// are those that most programs know; Set() reaches the others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/export.h"
#include "libtrace/trace.h"

namespace libtrace LIBTRACE_EXPORT {

struct CompilationMetrics {
  std::optional<std::string> compile_id{};  // default: the current compile
  std::optional<std::string> frame_key{};   // decimal frame id; default: of the current compile
  std::optional<std::string> co_name{};     // function
  std::optional<std::string> co_filename{};
  std::optional<int64_t> co_firstlineno{};
  std::optional<int64_t> cache_size{};              // compiles this frame already had
  std::optional<int64_t> accumulated_cache_size{};  // the same, over all restarts
  std::optional<int64_t> guard_count{};
  std::optional<int64_t> graph_op_count{};
  std::optional<int64_t> graph_node_count{};
  std::optional<int64_t> graph_input_count{};
  std::optional<std::string> fail_type;  // set = the compile failed
  std::optional<std::string> fail_reason{};
  std::optional<std::string> fail_user_frame_filename{};
  std::optional<int64_t> fail_user_frame_lineno{};
  std::optional<std::vector<std::string>> restart_reasons{};
  std::optional<double> dynamo_time_before_restart_s{};
  std::optional<bool> has_guarded_code{};
  std::optional<std::string> cuda_version{};
  std::optional<std::string> inductor_config{};  // JSON text
  std::optional<std::string> compiler_config{};  // JSON text
  std::optional<bool> is_forward = true;         // false: the record is bwd_compilation_metrics
  bool is_runtime = false;                       // true: …_runtime
  std::optional<int64_t> start_time_us{};        // since the epoch
  std::optional<int64_t> duration_us{};
  std::optional<int64_t> end_time_us{};
  std::optional<int64_t> backend_compile_time_us{};  // written as backend_compile_time_s
  std::optional<int64_t> inductor_cumulative_compile_time_us{};
  std::optional<int64_t> inductor_code_gen_cumulative_compile_time_us{};
  std::optional<int64_t> runtime_triton_autotune_time_us{};
  std::optional<int64_t> pre_grad_pass_time_us{};  // passes over graphs, by their stage
  std::optional<int64_t> joint_graph_pass_time_us{};
  std::optional<int64_t> post_grad_pass_time_us{};
  std::optional<int64_t> structured_logging_overhead_us{};
  std::map<std::string, bool> feature_usage{};
  std::optional<std::string> recompile_reason{};
  std::optional<int64_t> num_graph_breaks{};
  std::optional<std::vector<std::string>> stack_trace{};
  std::optional<std::vector<std::string>> exception_stack_trace{};
  std::optional<int64_t> ir_count{};
  std::optional<double> guard_latency_us{};
  std::optional<int64_t> param_numel{};
  std::optional<int64_t> param_bytes{};
  std::optional<int64_t> param_count{};
  int64_t inductor_fx_local_cache_hit_count = 0;
  int64_t inductor_fx_local_cache_miss_count = 0;
  int64_t inductor_fx_remote_cache_hit_count = 0;
  int64_t inductor_fx_remote_cache_miss_count = 0;
  int64_t aotautograd_local_cache_hit_count = 0;
  int64_t aotautograd_local_cache_miss_count = 0;
  int64_t aotautograd_remote_cache_hit_count = 0;
  int64_t aotautograd_remote_cache_miss_count = 0;

  // Members by PyTorch's name with JSON text as their value; they win over the fields above. Set by
  // Set() and SetJson(), which check the name.
  std::map<std::string, std::string, std::less<>> by_name{};

  // Sets any of the 99 members (also those without a field here: `triton_version`, `gc_time_us`, …) to
  // a number, text, list, … False, and nothing set, if PyTorch has no such member, or if there is
  // no memory.
  template <class T>
  bool Set(std::string_view name, const T& value) noexcept {
    return SetBuilt(name, [&](JsonWriter& json) { json.Value(value); });
  }
  // The same with JSON text; false also if it is not JSON.
  bool SetJson(std::string_view name, std::string_view json) noexcept;

 private:
  bool SetBuilt(std::string_view name, FunctionRef<void(JsonWriter&)> write) noexcept;
};

void EmitCompilationMetrics(const CompilationMetrics& metrics,
                            CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT
