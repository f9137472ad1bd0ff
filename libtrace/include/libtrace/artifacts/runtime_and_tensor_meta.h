// inductor_runtime_and_tensor_meta: estimated runtime and output tensors of every op of one graph,
// in order. PyTorch's shape (torch/_inductor/debug.py, log_runtime_and_tensor_meta). Schema:
// inductor_runtime_and_tensor_meta.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/array_view.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct TensorMeta {
  std::vector<int64_t> shape{};
  std::vector<int64_t> stride{};        // in elements
  std::optional<std::string> dtype{};   // without `torch.`: float32
  std::optional<std::string> device{};  // cpu, cuda:0. Our addition; left out if empty
};

struct OpRuntime {
  std::string name{};  // of a collective: its kernel name; else the node's
  bool is_collective = false;
  double estimated_runtime_ns = 0;
  std::vector<TensorMeta> outputs{};
};

void EmitRuntimeAndTensorMeta(ArrayView<OpRuntime> ops,
                              CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT
