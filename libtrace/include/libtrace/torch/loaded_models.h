// The models that this process keeps loaded. Pass the same object to every call of LoadOrBuild or
// LoadOrBuildPackage: a model that was loaded or built for a request is reused for equal ones.
//
//   libtrace::LoadedModels loaded(uint64_t{2} << 30);
//   libtrace::CachedModel model = libtrace::LoadOrBuild(cache, request, build, &loaded);
//
// A request that finds its model here reads no store and no archive. It emits a hit of the cache's
// layer with `answered_by` memory, and `libtrace_model_load` with the state memory_hit. Two threads
// that ask for the same model at once get one: the second waits for the first. If the first is itself
// waiting for a model that the second is loading, the second does not wait: it loads another copy,
// which is not kept.
// Thread-safe. A forked child begins without models.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "libtrace/export.h"
#include "libtrace/function_ref.h"

namespace libtrace LIBTRACE_EXPORT {

struct LoadedModelsStats {
  uint64_t model_count = 0;
  uint64_t size_bytes = 0;  // of these models
  uint64_t hit_count = 0;
  uint64_t load_count = 0;      // built or read from a store, failures included
  uint64_t eviction_count = 0;  // models dropped for others, and those too large to be held
};

class LoadedModels {
 public:
  // Holds models of at most this size together. A TorchScript model counts as its weights or its
  // archive, whichever is larger, a package as its file. The least recently used one is dropped
  // first; those who still use it keep it.
  explicit LoadedModels(uint64_t max_size_bytes = uint64_t{4} << 30);
  ~LoadedModels();
  LoadedModels(const LoadedModels&) = delete;
  LoadedModels& operator=(const LoadedModels&) = delete;

  LoadedModelsStats stats() const;
  // Drops all models.
  void Clear();

  struct Model {
    std::shared_ptr<void> object{};
    uint64_t size_bytes = 0;
  };
  // Called by the two functions. Returns the object of the key, or else the result of `load`; sets
  // *is_hit. Throws what `load` throws; another thread that waited for it then loads itself. A
  // `load` that requests its own key loads it again, and that object is not kept.
  std::shared_ptr<void> GetOrLoad(std::string_view key, FunctionRef<Model()> load, bool* is_hit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace LIBTRACE_EXPORT
