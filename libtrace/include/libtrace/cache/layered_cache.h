// LayeredCompileCache: two caches in step, as PyTorch's AOTAutogradCache over FxGraphCache
// (torch/_functorch/_aot_autograd/autograd_cache.py).
//
// An outer entry describes a whole compile: the keys of its graphs in the inner cache, or (bundled)
// the graphs themselves. It is a hit only if every graph is there. Inner entries are stored before
// the outer one that names them. An outer entry whose graphs are gone stays until it is evicted: the
// one that is stored after the next compile is newer and found first. Order of events:
//
//   all cached       inner hit per graph, outer hit
//   nothing cached   outer miss, then inner miss (or hit) per graph as it is compiled
//   a graph is gone  inner miss, outer miss, then inner events of compiling
//   bundled          outer events only; before a hit `<inner layer>_bundled_cache_hit` per graph
//   graph bypasses   its bypass, and after the outer miss a bypass of the outer layer
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/cache/compile_cache.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct LayeredCacheOptions {
  CompileCacheOptions outer{};
  CompileCacheOptions inner{};
  // Outer entries hold their graphs' artifacts; outer.artifacts_as_files then has no effect.
  bool bundled = false;
};

struct LayeredResult {
  CacheState state = CacheState::kMiss;  // of the outer layer
  CacheEntry outer{};
  std::vector<CacheEntry> graphs{};  // in the order in which they were compiled
  // Not ok: one of the layers is strict and bypassed, or Load did not find all; nothing else but
  // `state` is set then.
  Status status{};
};

class LayeredCompileCache {
 public:
  // Passed to the callback that compiles: compiles graphs through the inner cache and collects
  // their keys.
  class GraphCompiler {
   public:
    // Returns the graph's entry, from the inner cache or from `compile`. If the inner layer
    // bypasses, the outer one cannot be cached either; in strict mode both statuses are errors.
    CacheResult Compile(const CacheKey& key, bool is_backward, FunctionRef<CompileOutput()> compile,
                        CallSite location = CallSite::Current());

   private:
    friend class LayeredCompileCache;
    struct Graph {
      CacheKey key{};
      bool is_backward{};
      bool is_cached{};
      CacheEntry entry{};
    };
    LayeredCompileCache* cache_ = nullptr;
    GuardCheck check_guard_;
    std::vector<Graph> graphs_;
    std::optional<BypassReason> bypass_;
    Status status_;  // not ok: a strict inner layer bypassed
  };

  explicit LayeredCompileCache(LayeredCacheOptions options);
  ~LayeredCompileCache();

  // `compile` compiles every graph through the GraphCompiler and returns the outer part.
  // `check_guard` is called for guards of outer and inner entries.
  LayeredResult GetOrCompile(const CacheKey& key, GuardCheck check_guard,
                             FunctionRef<CompileOutput(GraphCompiler&)> compile,
                             CallSite location = CallSite::Current());

  // For a program that must not compile: the outer entry whose guard holds, with all its graphs, as
  // PyTorch's precompiled packages are loaded (torch/_dynamo/package.py: guards, code and the ids of
  // its backends). Otherwise a miss or a bypass, and the status names what is not there: an entry of
  // the key, the guard that does not hold, or the graph. Emits the same events as GetOrCompile.
  LayeredResult Load(const CacheKey& key, GuardCheck check_guard,
                     CallSite location = CallSite::Current());

  CompileCache& outer();
  CompileCache& inner();

 private:
  CompileCache::Lookup FindOuter(const CacheKey& key, GuardCheck check_guard, LayeredResult& result,
                                 std::string& missing_graph, CallSite location);
  bool LoadGraphs(const CacheEntry& outer, GuardCheck check_guard, LayeredResult& result,
                  CacheInfo& info, std::string& missing_graph, CallSite location);
  bool LoadInner(const CacheKey& key, GuardCheck check_guard, CacheEntry& graph, CacheInfo& info,
                 CallSite location);
  void EmitBundledHit(const CacheKey& key, const CacheEntry& graph, CallSite location);
  void StoreOuter(CompileCache::Lookup& lookup, const GraphCompiler& compiler, CacheEntry& outer);

  bool bundled_;
  std::unique_ptr<CompileCache> outer_;
  std::unique_ptr<CompileCache> inner_;
};

}  // namespace LIBTRACE_EXPORT
