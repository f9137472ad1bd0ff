#include "libtrace/torch/run_digest.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "core/errno_scope.h"
#include "libtrace/trace.h"
#include "torch/dtype_name.h"
#include "torch/model_digests.h"

namespace libtrace {
namespace {

void AddTensor(RunDigest& digest, const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized()) return;
  const at::Tensor bytes = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
  std::string type = std::string(DtypeName(bytes.scalar_type())) + "[";
  for (int64_t i = 0; i < bytes.dim(); ++i)
    type += (i == 0 ? "" : ", ") + std::to_string(bytes.size(i));
  type += "]";
  const std::string_view content(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  digest.Output(name, type, type + std::string(content));
}

void Add(RunDigest& digest, const std::string& name, const c10::IValue& value) {
  const auto add_all = [&](const auto& elements) {
    size_t index = 0;
    for (const auto& element : elements)
      Add(digest, (name.empty() ? "" : name + ".") + std::to_string(index++), element);
  };
  if (value.isTensor()) {
    AddTensor(digest, name.empty() ? "0" : name, value.toTensor());
  } else if (value.isTuple()) {
    const auto tuple = value.toTuple();
    add_all(tuple->elements());
  } else if (value.isList()) {
    add_all(value.toListRef());
  } else if (value.isGenericDict()) {
    std::vector<c10::IValue> values;
    for (const auto& entry : value.toGenericDict()) values.push_back(entry.value());
    add_all(values);
  }
}

}  // namespace

void AddOutputs(RunDigest& digest, const c10::IValue& outputs) {
  if (!IsEnabled()) return;
  const detail::ErrnoScope keeps_errno;
  const at::DisableRecordFunctionGuard unobserved;
  Add(digest, "", outputs);
}

void EmitRunDigest(const std::string& graph, uint64_t call, const Context& context,
                   const std::optional<RunDigest>& code, const c10::IValue& outputs,
                   CallSite location) noexcept {
  try {
    RunDigest digest(graph, call);
    if (code) digest.PartsOf(*code);
    AddOutputs(digest, outputs);
    const ContextScope scope(context);
    digest.Emit(location);
  } catch (const std::exception&) {  // no memory, or libtorch cannot copy: the run has no digest
  }
}

}  // namespace libtrace
