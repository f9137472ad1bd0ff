// What a TorchScript graph is specialised for: the types and sizes of its inputs.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "torch/dtype_name.h"

namespace libtrace {

struct InputFacts {
  std::string name{};  // argument
  std::string type{};  // `Tensor`, else libtorch's kind of value
  std::string dtype{}, device{};
  std::vector<int64_t> shape{}, stride{};
  bool requires_grad = false;

  // Strides do not count: a graph serves all of them.
  friend bool operator==(const InputFacts& a, const InputFacts& b) {
    return a.type == b.type && a.dtype == b.dtype && a.device == b.device && a.shape == b.shape &&
           a.requires_grad == b.requires_grad;
  }
};
using InputSignature = std::vector<InputFacts>;

inline void AppendFacts(const std::string& name, const c10::IValue& value,
                        InputSignature& signature) {
  if (value.isTensorList()) {
    const auto tensors = value.toTensorVector();
    for (size_t i = 0; i < tensors.size(); ++i) {
      AppendFacts(name + "[" + std::to_string(i) + "]", tensors[i], signature);
    }
    return;
  }
  if (value.isTuple()) {
    const auto& elements = value.toTupleRef().elements();
    for (size_t i = 0; i < elements.size(); ++i) {
      AppendFacts(name + "[" + std::to_string(i) + "]", elements[i], signature);
    }
    return;
  }
  InputFacts facts{.name = name, .type = value.tagKind()};
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor& tensor = value.toTensor();
    facts.dtype = DtypeName(tensor.scalar_type());
    facts.device = tensor.device().str();
    facts.shape = tensor.sizes().vec();
    if (tensor.layout() == at::kStrided) facts.stride = tensor.strides().vec();
    facts.requires_grad = tensor.requires_grad();
  }
  signature.push_back(std::move(facts));
}

// `float32[4, 8] cpu`
inline std::string ToText(const InputFacts& facts) {
  if (facts.dtype.empty()) return facts.type;
  std::string text = facts.dtype + "[";
  for (size_t i = 0; i < facts.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(facts.shape[i]);
  }
  return text + "] " + facts.device + (facts.requires_grad ? " requires_grad" : "");
}

// The first difference of `now` from `then`, worded as PyTorch's guards; "" if
// equal.
inline std::string FirstDifference(const InputSignature& then, const InputSignature& now) {
  if (then.size() != now.size()) {
    return "number of inputs mismatch. expected " + std::to_string(then.size()) + ", actual " +
           std::to_string(now.size());
  }
  for (size_t i = 0; i < now.size(); ++i) {
    const InputFacts &a = then[i], &b = now[i];
    const std::string tensor = "tensor '" + b.name + "' ";
    if (a.type != b.type)
      return "type of '" + b.name + "' mismatch. expected " + a.type + ", actual " + b.type;
    if (a.dtype != b.dtype)
      return tensor + "dtype mismatch. expected " + a.dtype + ", actual " + b.dtype;
    if (a.device != b.device)
      return tensor + "device mismatch. expected " + a.device + ", actual " + b.device;
    if (a.shape.size() != b.shape.size()) {
      return tensor + "rank mismatch. expected " + std::to_string(a.shape.size()) + ", actual " +
             std::to_string(b.shape.size());
    }
    for (size_t d = 0; d < b.shape.size(); ++d) {
      if (a.shape[d] == b.shape[d]) continue;
      return tensor + "size mismatch at index " + std::to_string(d) + ". expected " +
             std::to_string(a.shape[d]) + ", actual " + std::to_string(b.shape[d]);
    }
    if (a.requires_grad != b.requires_grad) {
      return tensor +
             "requires_grad mismatch. expected requires_grad=" + std::to_string(a.requires_grad);
    }
  }
  return {};
}

}  // namespace libtrace
