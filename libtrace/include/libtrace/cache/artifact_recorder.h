// ArtifactRecorder: copies the cache entries of one run to another machine, as PyTorch's
// torch.compiler.save_cache_artifacts / load_cache_artifacts (torch/compiler/_cache.py).
//
//   auto recorder = std::make_shared<libtrace::ArtifactRecorder>();
//   CompileCache cache({.layer = "acme_kernel", .directory = dir, .recorder = recorder});
//   …                                            // compile: entries found or stored are recorded
//   recorder->Save("kernels.bundle");            // or SetAutoSave: after each compile
//   …                                            // elsewhere, before the first compile:
//   libtrace::LoadCacheBundle("kernels.bundle", {&cache});
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

class CompileCache;
struct CacheEntry;

// What is inside a bundle. Also emitted as `libtrace_cache_bundle` whenever one is written or read
// (schema: libtrace_cache_bundle.schema.json).
struct CacheBundleInfo {
  std::map<std::string, std::vector<std::string>> keys_by_layer{};
  uint64_t entry_count = 0;
  uint64_t size_bytes = 0;     // of the serialized bundle
  uint64_t skipped_count = 0;  // populate: entries of layers that were not given, or not kept
};

// Thread-safe. A forked child begins with an empty one, which is not saved by itself.
class ArtifactRecorder {
 public:
  ArtifactRecorder();
  ~ArtifactRecorder();
  ArtifactRecorder(const ArtifactRecorder&) = delete;
  ArtifactRecorder& operator=(const ArtifactRecorder&) = delete;

  // Keeps a copy, or the open file of an artifact in a file. The same content under the same layer
  // and key counts once, regardless of its compile time; the same artifact is kept once in all.
  void Record(std::string_view layer, std::string_view key, const CacheEntry& entry);
  // The bundle: deterministic, with a checksum. In memory; "" if an artifact's file cannot be read.
  std::string Serialize(CacheBundleInfo* info = nullptr,
                        CallSite location = CallSite::Current()) const;
  // Serializes into a temporary file and renames it; artifacts pass through memory in pieces.
  Status Save(const std::string& path, CallSite location = CallSite::Current()) const;
  // From now on, Save(path) after each compile that added an entry; if it fails, the next one tries
  // again.
  // "" = never.
  void SetAutoSave(std::string path);
  void Clear();
  CacheBundleInfo info() const;

 private:
  friend class CompileCache;
  Status AfterCompile(CallSite location);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Puts the entries of a bundle back into the caches with the same layer names. Not ok, and nothing
// done, if the bundle is damaged or of another version. A bundle has no signature: load only those
// that you trust.
Status PopulateCaches(std::string_view bundle, const std::vector<CompileCache*>& caches,
                      CacheBundleInfo* info = nullptr, CallSite location = CallSite::Current());
Status LoadCacheBundle(const std::string& path, const std::vector<CompileCache*>& caches,
                       CacheBundleInfo* info = nullptr, CallSite location = CallSite::Current());

}  // namespace LIBTRACE_EXPORT
