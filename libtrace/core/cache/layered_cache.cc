#include "libtrace/cache/layered_cache.h"

#include "core/clock.h"

namespace libtrace {
namespace {

// Properties of an outer entry, in this order for each graph.
constexpr std::string_view kGraphKey = "graph_key";
constexpr std::string_view kGraphComponent =
    "graph_component";                                   // one per line of the key's components
constexpr std::string_view kGraphEntry = "graph_entry";  // bundled: the encoded inner entry

double ToMs(int64_t ns) { return static_cast<double>(ns) / 1e6; }

struct GraphReference {
  CacheKey key;
  std::string_view entry;  // bundled; a view into the outer entry
};

std::vector<GraphReference> GraphsOf(const CacheEntry& outer) {
  std::vector<GraphReference> graphs;
  for (const auto& [name, value] : outer.properties) {
    if (name == kGraphKey) {
      graphs.push_back({{value, {}}, {}});
    } else if (name == kGraphComponent && !graphs.empty()) {
      graphs.back().key.components.push_back(value);
    } else if (name == kGraphEntry && !graphs.empty()) {
      graphs.back().entry = value;
    }
  }
  return graphs;
}

CacheInfo SavingsOf(const CacheEntry& outer) {
  CacheInfo info;
  info.forward_time_saved_ms = ToMs(outer.time_taken_ns - outer.backward_time_taken_ns);
  info.backward_time_saved_ms = ToMs(outer.backward_time_taken_ns);
  info.time_saved_ms = ToMs(outer.time_taken_ns);
  return info;
}

}  // namespace

LayeredCompileCache::LayeredCompileCache(LayeredCacheOptions options)
    : bundled_(options.bundled),
      outer_(std::make_unique<CompileCache>(std::move(options.outer))),
      inner_(std::make_unique<CompileCache>(std::move(options.inner))) {}
LayeredCompileCache::~LayeredCompileCache() = default;

CompileCache& LayeredCompileCache::outer() { return *outer_; }
CompileCache& LayeredCompileCache::inner() { return *inner_; }

CacheResult LayeredCompileCache::GraphCompiler::Compile(const CacheKey& key, bool is_backward,
                                                        FunctionRef<CompileOutput()> compile,
                                                        CallSite location) {
  CacheResult result;
  if (cache_->bundled_) {
    const int64_t start_ns = detail::SteadyNs();
    CompileOutput output = compile();
    if (output.bypass) {
      bypass_ = output.bypass;
      result.state = CacheState::kBypass;
      result.status = cache_->inner_->StatusOfBypass(*output.bypass);
      if (!result.status.ok()) {
        status_ = result.status;
        return result;
      }
    }
    result.entry = std::move(output.entry);
    if (result.entry.time_taken_ns == 0) result.entry.time_taken_ns = detail::SteadyNs() - start_ns;
    result.is_cached = !output.bypass;
  } else {
    result = cache_->inner_->GetOrCompile(key, check_guard_, compile, location);
    if (result.state == CacheState::kBypass) {
      bypass_ = BypassReason{"a graph of the compile bypassed the inner cache", "", {}, false};
    }
    if (!result.status.ok()) {
      status_ = result.status;
      return result;
    }
  }
  graphs_.push_back({key, is_backward, result.is_cached, result.entry});
  return result;
}

// False if one is not there: `info` then says how the inner lookup went.
bool LayeredCompileCache::LoadGraphs(const CacheEntry& outer, GuardCheck check_guard,
                                     std::vector<CacheEntry>& graphs, CacheInfo& info,
                                     CallSite location) {
  graphs.clear();
  for (const GraphReference& reference : GraphsOf(outer)) {
    CacheEntry graph;
    const bool is_there = bundled_ ? Unbundle(reference.key, reference.entry, graph, info, location)
                                   : LoadInner(reference.key, check_guard, graph, info, location);
    if (!is_there) return false;
    graphs.push_back(std::move(graph));
  }
  info = SavingsOf(outer);
  return true;
}

bool LayeredCompileCache::LoadInner(const CacheKey& key, GuardCheck check_guard, CacheEntry& graph,
                                    CacheInfo& info, CallSite location) {
  CompileCache::Lookup lookup = inner_->Find(key, check_guard, location);
  if (lookup.state() == CacheState::kHit) {
    graph = std::move(lookup.entry());
    return true;
  }
  info.cache_status_detailed = lookup.info().cache_status_detailed.value_or("full_miss");
  info.cache_status_guard_expr = lookup.info().cache_status_guard_expr;
  return false;
}

bool LayeredCompileCache::Unbundle(const CacheKey& key, std::string_view entry, CacheEntry& graph,
                                   CacheInfo& info, CallSite location) {
  if (!DecodeCacheEntry(entry, graph).ok()) {
    info.cache_status_detailed = "full_miss";
    return false;
  }
  CacheInfo bundled;
  bundled.cache_status_detailed = "hit";
  bundled.key = key.text;
  bundled.components = key.components;
  bundled.answered_by = "bundle";
  bundled.time_saved_ns = graph.time_taken_ns;
  EmitCacheEvent(inner_->layer() + "_bundled", CacheState::kHit, bundled, location);
  return true;
}

LayeredResult LayeredCompileCache::GetOrCompile(const CacheKey& key, GuardCheck check_guard,
                                                FunctionRef<CompileOutput(GraphCompiler&)> compile,
                                                CallSite location) {
  LayeredResult result;
  bool is_stale = false;
  const auto accept = [&](const CacheEntry& outer, CacheInfo& info) {
    if (LoadGraphs(outer, check_guard, result.graphs, info, location)) return true;
    is_stale = true;
    return false;
  };
  CompileCache::Lookup lookup = outer_->Find(key, check_guard, accept, location);
  result.state = lookup.state();
  result.status = lookup.status();
  if (result.state == CacheState::kHit) {
    result.outer = std::move(lookup.entry());
    return result;
  }
  result.graphs.clear();
  if (!result.status.ok()) return result;
  // An entry that names graphs which are gone would be found again and again.
  if (is_stale) (void)outer_->Remove(key.text);
  lookup.EmitMiss();

  GraphCompiler compiler;
  compiler.cache_ = this;
  compiler.check_guard_ = check_guard;
  CompileOutput output = compile(compiler);
  if (output.bypass) compiler.bypass_ = output.bypass;
  if (result.state == CacheState::kMiss) {
    if (compiler.bypass_) {
      result.state = CacheState::kBypass;
      lookup.FinishBypassed(*compiler.bypass_);
      result.status = compiler.status_.ok() ? lookup.status() : compiler.status_;
      if (!result.status.ok()) return result;
    } else {
      StoreOuter(lookup, compiler, output.entry);
    }
  }
  result.outer = std::move(output.entry);
  for (GraphCompiler::Graph& graph : compiler.graphs_) {
    result.graphs.push_back(std::move(graph.entry));
  }
  return result;
}

void LayeredCompileCache::StoreOuter(CompileCache::Lookup& lookup, const GraphCompiler& compiler,
                                     CacheEntry& outer) {
  outer.backward_time_taken_ns = 0;
  for (const GraphCompiler::Graph& graph : compiler.graphs_) {
    if (!graph.is_cached) return;  // an outer entry must not name a graph that no store has
    if (graph.is_backward) outer.backward_time_taken_ns += graph.entry.time_taken_ns;
    outer.properties.emplace_back(kGraphKey, graph.key.text);
    for (const std::string& line : graph.key.components) {
      outer.properties.emplace_back(kGraphComponent, line);
    }
    if (bundled_) outer.properties.emplace_back(kGraphEntry, EncodeCacheEntry(graph.entry));
  }
  (void)lookup.Finish(outer);  // counted by the cache
}

}  // namespace libtrace
