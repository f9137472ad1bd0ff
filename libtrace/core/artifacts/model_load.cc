#include "libtrace/artifacts/model_load.h"

#include <algorithm>
#include <map>

#include "core/artifacts/weights.h"
#include "core/errno_scope.h"
#include "libtrace/trace.h"

namespace libtrace {
namespace detail {

void WriteWeights(JsonWriter& json, const std::vector<ModelWeight>& weights) {
  std::map<uint64_t, size_t> ordinals;  // of storages, from 1
  std::vector<std::vector<const ModelWeight*>> by_storage;
  json.Key("weights").BeginArray();
  for (const ModelWeight& weight : weights) {
    const auto [ordinal, is_new] = ordinals.try_emplace(weight.storage_id, by_storage.size() + 1);
    if (is_new) by_storage.emplace_back();
    by_storage[ordinal->second - 1].push_back(&weight);
    json.BeginObject().Field("name", weight.name).Field("shape", weight.shape);
    json.Field("dtype", weight.dtype).Field("device", weight.device);
    json.Field("size_bytes", weight.size_bytes)
        .Field("storage_id", static_cast<uint64_t>(ordinal->second))
        .EndObject();
  }
  json.EndArray();
  json.Field("weight_size_bytes", SizeOfWeights(weights)).Key("shared_weights").BeginArray();
  for (const auto& sharing : by_storage) {
    if (sharing.size() < 2) continue;
    json.BeginArray();
    for (const ModelWeight* weight : sharing) json.String(weight->name);
    json.EndArray();
  }
  json.EndArray();
}

}  // namespace detail

uint64_t SizeOfWeights(const std::vector<ModelWeight>& weights) {
  const detail::ErrnoScope keeps_errno;
  std::map<uint64_t, uint64_t> by_storage;
  for (const ModelWeight& weight : weights) {
    // a view of a storage may be smaller than the storage
    uint64_t& largest = by_storage[weight.storage_id];
    largest = std::max({largest, weight.size_bytes, weight.storage_size_bytes});
  }
  uint64_t size_bytes = 0;
  for (const auto& [id, largest] : by_storage) size_bytes += largest;
  return size_bytes;
}

ExcessMemory ExcessMemoryOf(const ModelLoad& load) {
  std::vector<ModelWeight> on_host, on_devices;
  for (const ModelWeight& weight : load.weights) {
    const bool is_on_host = weight.device.empty() || weight.device.compare(0, 3, "cpu") == 0;
    (is_on_host ? on_host : on_devices).push_back(weight);
  }
  const auto excess = [](std::optional<int64_t> before, std::optional<int64_t> after,
                         const std::vector<ModelWeight>& weights, uint64_t clone_size_bytes) {
    if (!before || !after) return std::optional<int64_t>();
    const uint64_t expected = SizeOfWeights(weights) + clone_size_bytes;
    return std::optional<int64_t>(*after - *before - static_cast<int64_t>(expected));
  };
  const bool is_device_measured = load.device_peak_before_bytes && load.device_peak_after_bytes;
  const uint64_t clone = load.clone_size_bytes.value_or(0);
  return {excess(load.memory_before_bytes, load.memory_after_bytes, on_host,
                 is_device_measured ? 0 : clone),
          excess(load.device_peak_before_bytes, load.device_peak_after_bytes, on_devices, clone)};
}

namespace {

void WriteLoad(JsonWriter& json, const ModelLoad& load) {
  json.BeginObject()
      .Field("model", load.model)
      .Field("kind", load.kind)
      .Field("state", load.state)
      .OptionalField("cache_key", load.cache_key)
      .Field("duration_ns", load.duration_ns)
      .OptionalField("memory_before_bytes", load.memory_before_bytes)
      .OptionalField("memory_after_bytes", load.memory_after_bytes)
      .OptionalField("device_peak_before_bytes", load.device_peak_before_bytes)
      .OptionalField("device_peak_after_bytes", load.device_peak_after_bytes)
      .OptionalField("clone_size_bytes", load.clone_size_bytes);
  const ExcessMemory excess = ExcessMemoryOf(load);
  json.OptionalField("excess_bytes", excess.resident_bytes)
      .OptionalField("device_excess_bytes", excess.device_peak_bytes);
  detail::WriteWeights(json, load.weights);
  json.EndObject();
}

template <class Write>
void EmitLoad(Write&& write, CallSite location) noexcept {
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact("libtrace_model_load", JsonStyle::kOneLine, write, options, location);
}

}  // namespace

void EmitModelLoad(const ModelLoad& load, CallSite location) noexcept {
  EmitLoad([&](JsonWriter& json) { WriteLoad(json, load); }, location);
}

void detail::EmitModelLoad(FunctionRef<void(ModelLoad&)> fill, CallSite location) noexcept {
  EmitLoad(
      [&](JsonWriter& json) {
        ModelLoad load;
        fill(load);
        WriteLoad(json, load);
      },
      location);
}

}  // namespace libtrace
