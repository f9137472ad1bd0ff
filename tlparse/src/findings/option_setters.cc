// How options in which ranks differ are set, where their names do not say it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "findings/divergences.h"

namespace tlparse {
namespace {

// What a user calls or sets to change a component of a cache key.
constexpr std::pair<std::string_view, std::string_view> kSetters[] = {
    {"autocast_state", "torch.autocast"},
    {"cpp_runtime_thread_count", "OMP_NUM_THREADS or torch.set_num_threads"},
    {"cuda_matmul_settings",
     "torch.set_float32_matmul_precision or torch.backends.cuda.matmul.allow_tf32"},
    {"default_cuda_device_index", "torch.cuda.set_device"},
    {"default_dtype", "torch.set_default_dtype"},
    {"deterministic_algorithms", "torch.use_deterministic_algorithms"},
    {"force_disable_caches",
     "the variable TORCHINDUCTOR_FORCE_DISABLE_CACHES or TORCH_COMPILE_FORCE_DISABLE_CACHES, or "
     "torch.compiler.config.force_disable_caches"},
    {"grad_enabled", "torch.no_grad or torch.set_grad_enabled"},
};

// Options of Inductor that a variable sets as well: TORCHINDUCTOR_ and the name in capitals
// (torch/_inductor/config.py).
constexpr std::string_view kOfVariables[] = {
    "benchmark_fusion",
    "benchmark_kernel",
    "coordinate_descent_tuning",
    "cpp_wrapper",
    "fx_graph_cache",
    "keep_output_stride",
    "layout_optimization",
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_gemm_backends",
    "max_autotune_pointwise",
    "memory_planning",
    "online_softmax",
    "use_fast_math",
};

// "max_autotune" of "inductor_config[max_autotune]"; a component of a cache key as it is.
std::string_view PlainName(std::string_view name) {
  for (const std::string_view module : {"inductor_config[", "compiler_config["}) {
    if (name.starts_with(module) && name.ends_with(']'))
      return name.substr(module.size(), name.size() - module.size() - 1);
  }
  return name;
}

std::string VariableOf(std::string_view option) {
  std::string name = "TORCHINDUCTOR_";
  for (const char c : option) name += UpperAscii(c);
  return name;
}

}  // namespace

std::string HowToSet(const std::vector<RankOption>& options) {
  std::string text;
  for (const auto& setter : kSetters) {
    const std::string_view component = setter.first;
    const bool differs = std::any_of(options.begin(), options.end(), [&](const RankOption& one) {
      return PlainName(one.name) == component;
    });
    if (differs) text += fmt::format("; {} is set by {}", component, setter.second);
  }
  for (const RankOption& one : options) {
    const std::string_view name = PlainName(one.name);
    if (std::find(std::begin(kOfVariables), std::end(kOfVariables), name) != std::end(kOfVariables))
      text += fmt::format("; {} is also set by the variable {}", name, VariableOf(name));
  }
  return text;
}

}  // namespace tlparse
