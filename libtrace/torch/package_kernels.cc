#include "torch/package_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/json_reader.h"
#include "torch/package_code.h"

namespace libtrace {
namespace {

bool AreEqual(const FusedOp& a, const FusedOp& b) {
  const auto is_same = [](const TensorMeta& x, const TensorMeta& y) {
    return x.shape == y.shape && x.stride == y.stride && x.dtype == y.dtype && x.device == y.device;
  };
  return a.cost.flops == b.cost.flops && a.cost.size_bytes == b.cost.size_bytes &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    is_same);
}

// Products that CostOf has a formula for.
bool HasFormula(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "addbmm", "convolution"};
  return kOps.count(op) != 0;
}

// "torch.float32" and a list of sizes.
struct KnownTensor {
  bool is_known = false;
  std::vector<int64_t> shape{};
  std::string dtype{};
};

bool ReadShape(JsonReader& json, KnownTensor& tensor) {
  tensor.is_known = true;
  return json.Array([&] {
    int64_t& size = tensor.shape.emplace_back();
    const char next = json.Peek();
    if (next < '0' || next > '9') {  // a symbol
      tensor.is_known = false;
      return json.Skip();
    }
    return json.Int(size);
  });
}
bool ReadDtype(JsonReader& json, KnownTensor& tensor) {
  if (json.Peek() != '"') return json.Skip();
  if (!json.String(tensor.dtype)) return false;
  if (tensor.dtype.starts_with("torch.")) tensor.dtype.erase(0, 6);
  return true;
}

// One member of kernel_information.json.
struct KnownKernel {
  std::vector<KnownTensor> inputs;
  KnownTensor output;

  bool Read(JsonReader& json) {
    const auto at = [this](size_t i) -> KnownTensor& {
      if (inputs.size() <= i) inputs.resize(i + 1);
      return inputs[i];
    };
    return json.Object([&](std::string_view member) {
      size_t i = 0;
      if (member == "input_shapes") return json.Array([&] { return ReadShape(json, at(i++)); });
      if (member == "input_dtypes") return json.Array([&] { return ReadDtype(json, at(i++)); });
      if (member == "output_shape") return ReadShape(json, output);
      if (member == "output_dtype") return ReadDtype(json, output);
      return json.Skip();
    });
  }
};

// `aoti_torch_cpu_addmm_out` calls addmm on a CPU; empty for other names.
struct CalledOp {
  std::string_view device, op;
};
CalledOp CalledOpOf(std::string_view name) {
  if (!name.starts_with("aoti_torch_")) return {};
  name.remove_prefix(11);
  const size_t end = name.find('_');
  if (end == std::string_view::npos) return {};
  CalledOp called{name.substr(0, end), name.substr(end + 1)};
  if (called.op.ends_with("_out")) called.op.remove_suffix(4);
  return called;
}

FusedOp CallOf(const CalledOp& called, const KnownKernel& kernel) {
  FusedOp call;
  if (IsProduct(called.op) && !HasFormula(called.op)) return call;
  std::vector<OpTensor> tensors;
  const auto add = [&](const KnownTensor& tensor) {
    const auto item_size = SizeOfDtype(tensor.dtype);
    if (!tensor.is_known || !item_size) return false;
    uint64_t size_bytes = *item_size;
    for (const int64_t size : tensor.shape) size_bytes *= static_cast<uint64_t>(size);
    tensors.push_back({tensor.shape, size_bytes});
    return true;
  };
  for (const KnownTensor& input : kernel.inputs) {
    if (!add(input)) return call;
  }
  if (!add(kernel.output)) return call;
  const std::span<const OpTensor> all(tensors);
  call.cost = CostOf(called.op, all.first(all.size() - 1), all.last(1), false);
  call.outputs = {{.shape = kernel.output.shape,
                   .dtype = kernel.output.dtype,
                   .device = std::string(called.device)}};
  return call;
}

// By name, in the order of their debug handles, which is that of the code.
FusedOps CalledOps(std::string_view information) {
  std::map<std::string, std::map<int64_t, FusedOp>> by_handle;
  JsonReader json(information);
  const bool is_whole = json.Object([&](std::string_view text) {
    const std::string call = JsonReader::Decoded(text);
    const size_t colon = call.find(':');
    const std::string name = call.substr(0, colon);
    const CalledOp called = CalledOpOf(name);
    if (called.op.empty() || colon == std::string::npos) return json.Skip();
    KnownKernel kernel;
    if (!kernel.Read(json)) return false;
    by_handle[name][std::strtoll(call.c_str() + colon + 1, nullptr, 10)] = CallOf(called, kernel);
    return true;
  });
  FusedOps calls;
  if (!is_whole) return calls;
  for (auto& [name, kernels] : by_handle) {
    for (auto& [handle, kernel] : kernels) calls[name].push_back(std::move(kernel));
  }
  return calls;
}

}  // namespace

FusedOps PackageKernelCalls(std::string_view code, std::string_view information,
                            const std::vector<PackageKernel>& kernels) {
  CodeCalls in_code = ReadCodeCalls(code, kernels);
  FusedOps& calls = in_code.calls;
  calls.merge(CalledOps(information));
  for (auto one = calls.begin(); one != calls.end();) {
    std::vector<FusedOp>& of_name = one->second;
    const bool is_one = std::all_of(of_name.begin(), of_name.end(), [&](const FusedOp& call) {
      return AreEqual(call, of_name.front());
    });
    if (is_one) of_name.resize(1);
    one = is_one || in_code.is_straight ? std::next(one) : calls.erase(one);
  }
  return std::move(calls);
}

}  // namespace libtrace
