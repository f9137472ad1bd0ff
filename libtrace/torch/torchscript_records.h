// Emits the records of a TorchScript compile, for the wrapper and the observer.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libtrace/artifacts/model_load.h"
#include "libtrace/compile.h"
#include "libtrace/torch/op_observer.h"
#include "torch/input_signature.h"

namespace libtrace {

// Of the arguments `values` for the parameters from `first_parameter` on (0 is self).
InputSignature SignatureOf(c10::ArrayRef<c10::IValue> values, size_t first_parameter,
                           const torch::jit::Function& function);

// Earlier compiles with what they were made for, oldest first. `file` keeps the text that the
// description refers to.
CompileDescription DescribeCompile(
    const std::string& model,
    const std::vector<std::pair<CompileId, const InputSignature*>>& earlier,
    const InputSignature& signature, const torch::jit::Graph& graph, std::string& file);

std::vector<ModelWeight> WeightsOf(const torch::jit::Module& module);

// At the start of a compile, within it.
void EmitGraphBefore(Compile& compile, const torch::jit::Graph& graph, size_t earlier_count,
                     size_t guard_count, CallSite location);
void EmitSignature(const std::string& model, const InputSignature& inputs,
                   const c10::IValue& output, CallSite location);
// What is known of an optimised graph for when it runs.
struct OptimizedFacts {
  std::vector<std::string> mark_names{};  // of marked nodes (ProvenanceLevel::kFull)
  std::shared_ptr<const FusedOps> fused_ops{};
};
// The optimised graph and where its kernels come from. `metrics` may be null.
OptimizedFacts EmitOptimizedRecords(const torch::jit::Graph& before, torch::jit::Graph& after,
                                    CompilationMetrics* metrics, CallSite location);

}  // namespace libtrace
