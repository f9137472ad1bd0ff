// The tensors of an op's inputs and outputs for OpObserver: those that are already known are hashed
// and not stored.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/artifacts/runtime_and_tensor_meta.h"
#include "libtrace/torch/cost_model.h"
#include "torch/dtype_name.h"

namespace libtrace::detail {

inline constexpr size_t kMaxTensors = 6;
inline constexpr size_t kMaxDimensions = 8;

// Everything of one tensor that is kept, of fixed size.
struct Facts {
  std::array<int64_t, kMaxDimensions> shape;
  std::array<int64_t, kMaxDimensions> stride;
  int64_t element_count;
  int8_t dimension_count;
  at::ScalarType dtype;
  c10::DeviceType device_type;
  c10::DeviceIndex device_index;
  bool is_strided;
};

constexpr uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccdULL;
  return hash ^ hash >> 32;
}

inline uint64_t HashOfName(std::string_view name) {
  uint64_t hash = name.size();
  for (; name.size() >= sizeof(uint64_t); name.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, name.data(), sizeof(word));
    hash = Mix(hash, word);
  }
  uint64_t rest = 0;
  for (const char c : name) rest = rest << 8 | static_cast<unsigned char>(c);
  return Mix(hash, rest);
}

// One odd factor per size and stride: their products do not wait for each other, as Mix would.
inline constexpr std::array<uint64_t, 2 * kMaxDimensions> kFactors = [] {
  std::array<uint64_t, 2 * kMaxDimensions> factors{};
  uint64_t state = 0;
  for (uint64_t& factor : factors) {
    state += 0x9e3779b97f4a7c15ULL;
    factor = Mix(Mix(state, state >> 30), state >> 27) | 1;
  }
  return factors;
}();

// Everything that distinguishes tensors; kept in `fact` too if that is not null.
inline uint64_t HashOf(const at::TensorImpl& impl, Facts* fact) {
  const c10::IntArrayRef sizes = impl.sizes();
  const size_t dimensions = std::min(sizes.size(), kMaxDimensions);
  const bool is_strided = impl.layout() == at::kStrided;
  const int64_t* const strides = is_strided ? impl.strides().data() : nullptr;
  const at::ScalarType dtype = c10::typeMetaToScalarType(impl.dtype());
  const c10::Device device = impl.device();
  uint64_t sum = uint64_t{static_cast<uint8_t>(device.index())} << 32 | uint64_t{is_strided} << 24 |
                 dimensions << 16 | static_cast<uint64_t>(dtype) << 8 |
                 static_cast<uint64_t>(device.type());
  for (size_t d = 0; d < dimensions; ++d) {
    sum += static_cast<uint64_t>(sizes[d]) * kFactors[d];
    if (fact != nullptr) fact->shape[d] = sizes[d];
    if (strides == nullptr) continue;
    sum += static_cast<uint64_t>(strides[d]) * kFactors[kMaxDimensions + d];
    if (fact != nullptr) fact->stride[d] = strides[d];
  }
  if (fact != nullptr) {
    fact->element_count = impl.numel();
    fact->dimension_count = static_cast<int8_t>(dimensions);
    fact->is_strided = is_strided;
    fact->dtype = dtype;
    fact->device_type = device.type();
    fact->device_index = device.index();
  }
  return sum;
}

// Calls `use(tensor)` for the tensors of a value.
template <class Use>
void ForEachTensor(const c10::IValue& value, const Use& use) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined()) use(*tensor.unsafeGetTensorImpl());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) use(*tensor.unsafeGetTensorImpl());
    }
  } else if (value.isList()) {  // List[Optional[Tensor]] of index()
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor() && element.toTensor().defined())
        use(*element.toTensor().unsafeGetTensorImpl());
    }
  }
}

// Of the first kMaxTensors of an op's inputs or outputs.
struct TensorHash {
  uint32_t count = 0;
  uint64_t hash = 0;

  // `facts`: of all tensors, to be filled; may be null.
  void Add(const at::TensorImpl& impl, Facts* facts) {
    if (count == kMaxTensors) return;
    hash = Mix(hash, HashOf(impl, facts == nullptr ? nullptr : facts + count));
    ++count;
  }
};

inline const void* StorageOf(const at::TensorImpl& impl) {
  return impl.has_storage() ? impl.storage().unsafeGetStorageImpl() : nullptr;
}

struct Tensors {
  std::array<Facts, kMaxTensors> facts;
  TensorHash seen;
  const void* first_storage = nullptr;

  void Clear() {
    seen = {};
    first_storage = nullptr;
  }
  void Add(const at::TensorImpl& impl) {
    if (seen.count == 0) first_storage = StorageOf(impl);
    seen.Add(impl, facts.data());
  }
};

inline std::vector<TensorMeta> Describe(const Tensors& tensors) {
  std::vector<TensorMeta> result(tensors.seen.count);
  for (uint32_t i = 0; i < tensors.seen.count; ++i) {
    const Facts& fact = tensors.facts[i];
    result[i].shape.assign(fact.shape.begin(), fact.shape.begin() + fact.dimension_count);
    if (fact.is_strided)
      result[i].stride.assign(fact.stride.begin(), fact.stride.begin() + fact.dimension_count);
    result[i].dtype = DtypeName(fact.dtype);
    result[i].device = c10::Device(fact.device_type, fact.device_index).str();
  }
  return result;
}

inline std::vector<OpTensor> Sizes(const Tensors& tensors) {
  std::vector<OpTensor> result(tensors.seen.count);
  for (uint32_t i = 0; i < tensors.seen.count; ++i) {
    const Facts& fact = tensors.facts[i];
    result[i] = {{fact.shape.data(), static_cast<size_t>(fact.dimension_count)},
                 static_cast<uint64_t>(fact.element_count) * c10::elementSize(fact.dtype)};
  }
  return result;
}

// Whether all that the op returns lies in the memory of its first tensor.
inline bool IsView(const std::string& name, const Tensors& inputs,
                   const std::vector<c10::IValue>& outputs) {
  if (inputs.first_storage == nullptr || name.ends_with('_') || name.ends_with("out")) return false;
  bool is_view = false;
  bool is_other = false;
  for (const c10::IValue& value : outputs) {
    ForEachTensor(value, [&](const at::TensorImpl& tensor) {
      (StorageOf(tensor) == inputs.first_storage ? is_view : is_other) = true;
    });
  }
  return is_view && !is_other;
}

}  // namespace libtrace::detail
