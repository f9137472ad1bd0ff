// libtrace_model_load: one model that was loaded or compiled, with what it costs in memory.
// Schema: libtrace_model_load.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/trace.h"

namespace libtrace LIBTRACE_EXPORT {

struct ModelWeight {
  std::string name{};
  std::vector<int64_t> shape{};
  std::string dtype{};   // float32
  std::string device{};  // cpu, cuda:0
  uint64_t size_bytes = 0;
  // Weights with equal ids share their storage, which then counts once. Any numbering, such as
  // addresses: records hold ordinals, 1 for the storage of the first weight.
  uint64_t storage_id = 0;
  uint64_t storage_size_bytes = 0;  // 0 = not known: that of the largest weight of the storage
};

struct ModelLoad {
  std::string model{};  // name or path
  std::string kind{};   // torchscript, aotinductor, or your own
  std::string state{};  // loaded, compiled, memory_hit (the process had it), cache_hit
  std::optional<std::string> cache_key{};
  int64_t duration_ns = 0;
  std::optional<int64_t> memory_before_bytes{};  // resident, of the process
  std::optional<int64_t> memory_after_bytes{};
  // The most that was allocated on the GPUs of the process at one time so far, as
  // torch.cuda.max_memory_allocated, summed over them.
  std::optional<int64_t> device_peak_before_bytes{};
  std::optional<int64_t> device_peak_after_bytes{};
  std::vector<ModelWeight> weights{};
  // Of a copy of the model that the program made for the load, if it did.
  std::optional<uint64_t> clone_size_bytes{};
};

// What a load took beyond the weights and the copy: the rise of the memory less the weights that lie
// there. The copy is taken off the device if that was measured, else off the process. Empty: not
// measured. May be negative: memory that was free before was used again.
struct ExcessMemory {
  std::optional<int64_t> resident_bytes{};     // weights on no GPU
  std::optional<int64_t> device_peak_bytes{};  // weights on GPUs
};
ExcessMemory ExcessMemoryOf(const ModelLoad& load);

// Every storage once: its size, or that of the largest of the weights that share it.
uint64_t SizeOfWeights(const std::vector<ModelWeight>& weights);

// Also writes weight_size_bytes (SizeOfWeights), shared_weights (names by storage) and ExcessMemoryOf.
void EmitModelLoad(const ModelLoad& load, CallSite location = CallSite::Current()) noexcept;

namespace detail {
void EmitModelLoad(FunctionRef<void(ModelLoad&)> fill, CallSite location) noexcept;
}
// The same with a function that fills in the ModelLoad; called only when tracing is on. If it
// throws, the record is lost and counted.
template <class Fill, class = std::enable_if_t<!std::is_convertible_v<Fill&&, const ModelLoad&>>>
void EmitModelLoad(Fill&& fill, CallSite location = CallSite::Current()) noexcept {
  static_assert(
      std::is_invocable_v<Fill&, ModelLoad&>,
      "libtrace: write the function as [&](libtrace::ModelLoad& load) { load.model = my_name; }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) detail::EmitModelLoad(fill, location);
}

}  // namespace LIBTRACE_EXPORT
