#include "libtrace/torch/cost_model.h"

#include <algorithm>

namespace libtrace {
namespace {

double Elements(const OpTensor& tensor) {
  double count = 1;
  for (const int64_t size : tensor.shape) count *= static_cast<double>(size);
  return count;
}

// Columns of the left matrix: how many products each element of the result sums up.
double Contracted(const OpTensor& left) {
  return left.shape.empty() ? 1 : static_cast<double>(left.shape.back());
}

// output elements x input channels per group x window, from the weight (out, in / groups, k…).
double ConvolutionFlops(const OpTensor& weight, const OpTensor& output) {
  if (weight.shape.empty()) return 0;
  const double per_output =
      Elements(weight) / static_cast<double>(std::max<int64_t>(weight.shape[0], 1));
  return 2 * Elements(output) * per_output;
}

// Elementwise functions that take many instructions; the number is FLOPs per element.
double ElementwiseFlops(std::string_view op) {
  for (const std::string_view name :
       {"exp", "log", "tanh", "sigmoid", "gelu", "softmax", "erf", "pow", "sin", "cos", "silu"}) {
    if (op.find(name) != std::string_view::npos) return 10;
  }
  return 1;
}

// Ops whose time follows neither from their bytes nor from one FLOP per element.
bool HasNoFormula(std::string_view op) {
  if (op.find("::") != std::string_view::npos) return true;  // somebody else's
  for (const std::string_view part : {"rand",
                                      "normal",
                                      "bernoulli",
                                      "multinomial",
                                      "uniform",
                                      "exponential",
                                      "poisson",
                                      "dropout",
                                      "sort",
                                      "topk",
                                      "unique",
                                      "nonzero",
                                      "searchsorted",
                                      "kthvalue",
                                      "median",
                                      "mode",
                                      "linalg",
                                      "cholesky",
                                      "svd",
                                      "qr",
                                      "inverse",
                                      "triangular_solve",
                                      "lu_",
                                      "fft",
                                      "stft",
                                      "lstm",
                                      "gru",
                                      "rnn",
                                      "attention",
                                      "cdist",
                                      "convolution_backward"}) {
    if (op.find(part) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

OpCost CostOf(std::string_view op, std::span<const OpTensor> inputs,
              std::span<const OpTensor> outputs, bool is_view) noexcept {
  OpCost cost;
  if (is_view) return cost;
  double largest = 0;
  for (const auto tensors : {inputs, outputs}) {
    for (const OpTensor& tensor : tensors) {
      cost.size_bytes += static_cast<double>(tensor.size_bytes);
      largest = std::max(largest, Elements(tensor));
    }
  }
  if (op.starts_with("aten::")) op.remove_prefix(6);
  const bool has_output = !outputs.empty();
  const auto is = [op](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  if (has_output && inputs.size() >= 2 && is({"mm", "bmm", "matmul", "mv", "linear"})) {
    cost.flops = 2 * Elements(outputs[0]) * Contracted(inputs[0]);
    if (op == "linear" && inputs.size() > 2) cost.flops += Elements(outputs[0]);
  } else if (inputs.size() >= 2 && is({"dot", "vdot"})) {
    cost.flops = 2 * Elements(inputs[0]);
  } else if (has_output && inputs.size() >= 3 && is({"addmm", "baddbmm", "addmv", "addbmm"})) {
    cost.flops = 2 * Elements(outputs[0]) * Contracted(inputs[1]) + Elements(outputs[0]);
  } else if (has_output && inputs.size() >= 2 && op.find("conv") != std::string_view::npos &&
             op.find("::") == std::string_view::npos &&
             op.find("backward") == std::string_view::npos) {
    cost.flops = ConvolutionFlops(inputs[1], outputs[0]);
  } else {
    cost.flops = largest * ElementwiseFlops(op);
    cost.is_known = !HasNoFormula(op);
  }
  return cost;
}

double Roofline::EstimateNs(const OpCost& cost) const noexcept {
  const double compute_s = flops_per_s > 0 ? cost.flops / flops_per_s : 0;
  const double memory_s = bytes_per_s > 0 ? cost.size_bytes / bytes_per_s : 0;
  return op_overhead_ns + 1e9 * std::max(compute_s, memory_s);
}

}  // namespace libtrace
