#include "libtrace/cache/layered_cache.h"

#include <cstdlib>

#include "core/cache/byte_coder.h"
#include "core/clock.h"
#include "core/errno_scope.h"

namespace libtrace {
namespace {

// Properties of an outer entry, in this order for each graph.
constexpr std::string_view kGraphKey = "graph_key";
constexpr std::string_view kGraphComponent = "graph_component";  // one per line of the components
constexpr std::string_view kGraphTime = "graph_time_taken_ns";   // bundled: a note for each graph

double ToMs(int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::vector<CacheKey> GraphsOf(const CacheEntry& outer) {
  std::vector<CacheKey> graphs;
  for (const auto& [name, value] : outer.properties) {
    if (name == kGraphKey) {
      graphs.push_back({value, {}});
    } else if (name == kGraphComponent && !graphs.empty()) {
      graphs.back().components.push_back(value);
    }
  }
  return graphs;
}

// A bundled artifact: that of the outer entry, then the encoded entry of each graph, without times
// (they are notes, because they are no part of what the entry is).
std::string Bundle(const std::string& artifact, const std::vector<CacheEntry>& graphs) {
  std::string bytes;
  detail::PutSized(artifact, bytes);
  for (CacheEntry graph : graphs) {
    graph.time_taken_ns = graph.backward_time_taken_ns = 0;
    graph.notes.clear();
    detail::PutSized(EncodeCacheEntry(graph), bytes);
  }
  return bytes;
}

bool Unbundle(const CacheEntry& outer, size_t graph_count, std::string& artifact,
              std::vector<CacheEntry>& graphs) {
  detail::ByteReader reader(outer.artifact);
  artifact = reader.Sized();
  for (size_t i = 0; i < graph_count; ++i) {
    if (!DecodeCacheEntry(reader.Sized(), graphs.emplace_back()).ok()) return false;
  }
  size_t next = 0;
  for (const auto& [name, value] : outer.notes) {
    if (name != kGraphTime || next == graphs.size()) continue;
    graphs[next++].time_taken_ns = strtoll(value.c_str(), nullptr, 10);
  }
  return reader.ok() && reader.at_end();
}

CacheInfo SavingsOf(const CacheEntry& outer) {
  CacheInfo info;
  info.forward_time_saved_ms = ToMs(outer.time_taken_ns - outer.backward_time_taken_ns);
  info.backward_time_saved_ms = ToMs(outer.backward_time_taken_ns);
  info.time_saved_ms = ToMs(outer.time_taken_ns);
  return info;
}

CompileCacheOptions OuterOptions(const LayeredCacheOptions& options) {
  CompileCacheOptions outer = options.outer;
  if (options.bundled) outer.artifacts_as_files = false;
  return outer;
}

}  // namespace

LayeredCompileCache::LayeredCompileCache(LayeredCacheOptions options) : bundled_(options.bundled) {
  const detail::ErrnoScope keeps_errno;
  outer_ = std::make_unique<CompileCache>(OuterOptions(options));
  inner_ = std::make_unique<CompileCache>(std::move(options.inner));
}
LayeredCompileCache::~LayeredCompileCache() = default;

CompileCache& LayeredCompileCache::outer() { return *outer_; }
CompileCache& LayeredCompileCache::inner() { return *inner_; }

CacheResult LayeredCompileCache::GraphCompiler::Compile(const CacheKey& key, bool is_backward,
                                                        FunctionRef<CompileOutput()> compile,
                                                        CallSite location) {
  const detail::ErrnoScope keeps_errno;
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
                                     LayeredResult& result, CacheInfo& info,
                                     std::string& missing_graph, CallSite location) {
  result.graphs.clear();
  const std::vector<CacheKey> keys = GraphsOf(outer);
  if (bundled_) {
    if (!Unbundle(outer, keys.size(), result.outer.artifact, result.graphs)) {
      info.cache_status_detailed = "full_miss";
      return false;
    }
    for (size_t i = 0; i < keys.size(); ++i) EmitBundledHit(keys[i], result.graphs[i], location);
  } else {
    for (const CacheKey& key : keys) {
      if (LoadInner(key, check_guard, result.graphs.emplace_back(), info, location)) continue;
      missing_graph = key.text;
      return false;
    }
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
  info.remote_error = lookup.info().remote_error;
  return false;
}

void LayeredCompileCache::EmitBundledHit(const CacheKey& key, const CacheEntry& graph,
                                         CallSite location) {
  CacheInfo info;
  info.cache_status_detailed = "hit";
  info.key = key.text;
  info.components = key.components;
  info.answered_by = "bundle";
  info.time_saved_ns = graph.time_taken_ns;
  EmitCacheEvent(inner_->layer() + "_bundled", CacheState::kHit, info, location);
}

CompileCache::Lookup LayeredCompileCache::FindOuter(const CacheKey& key, GuardCheck check_guard,
                                                    LayeredResult& result,
                                                    std::string& missing_graph, CallSite location) {
  const auto accept = [&](const CacheEntry& outer, CacheInfo& info) {
    return LoadGraphs(outer, check_guard, result, info, missing_graph, location);
  };
  CompileCache::Lookup lookup = outer_->Find(key, check_guard, accept, location);
  result.state = lookup.state();
  result.status = lookup.status();
  if (result.state == CacheState::kHit) {
    if (bundled_) lookup.entry().artifact = std::move(result.outer.artifact);
    result.outer = std::move(lookup.entry());
  } else {
    result.outer = {};
    result.graphs.clear();
  }
  return lookup;
}

LayeredResult LayeredCompileCache::Load(const CacheKey& key, GuardCheck check_guard,
                                        CallSite location) {
  const detail::ErrnoScope keeps_errno;
  LayeredResult result;
  std::string missing_graph;
  const CompileCache::Lookup lookup = FindOuter(key, check_guard, result, missing_graph, location);
  if (result.state == CacheState::kHit || !result.status.ok()) return result;
  const std::string entry = "the entry of " + key.text + " in " + outer_->layer();
  const std::string guard = lookup.info().cache_status_guard_expr.value_or("");
  if (result.state == CacheState::kBypass) {
    result.status = Status::Error(entry + " was not looked up: the lookup is a bypass");
  } else if (!missing_graph.empty()) {
    result.status = Status::Error(entry + " names the graph " + missing_graph + ", of which " +
                                  inner_->layer() + " has no entry whose guard holds");
  } else if (!guard.empty()) {
    result.status = Status::Error(entry + " has a guard that does not hold: " + guard);
  } else {
    result.status = Status::Error(outer_->layer() + " has no entry of " + key.text);
  }
  return result;
}

LayeredResult LayeredCompileCache::GetOrCompile(const CacheKey& key, GuardCheck check_guard,
                                                FunctionRef<CompileOutput(GraphCompiler&)> compile,
                                                CallSite location) {
  const detail::ErrnoScope keeps_errno;
  LayeredResult result;
  std::string missing_graph;
  CompileCache::Lookup lookup = FindOuter(key, check_guard, result, missing_graph, location);
  if (result.state == CacheState::kHit || !result.status.ok()) return result;
  lookup.EmitMiss();
  lookup.BeginCompile();

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
  std::vector<CacheEntry> graphs;
  for (const GraphCompiler::Graph& graph : compiler.graphs_) {
    if (!graph.is_cached) return;  // an outer entry must not name a graph that no store has
    if (graph.is_backward) outer.backward_time_taken_ns += graph.entry.time_taken_ns;
    outer.properties.emplace_back(kGraphKey, graph.key.text);
    for (const std::string& line : graph.key.components) {
      outer.properties.emplace_back(kGraphComponent, line);
    }
    if (!bundled_) continue;
    outer.notes.emplace_back(kGraphTime, std::to_string(graph.entry.time_taken_ns));
    graphs.push_back(graph.entry);
  }
  CacheEntry stored = outer;
  if (bundled_) stored.artifact = Bundle(outer.artifact, graphs);
  (void)lookup.Finish(stored);  // counted by the cache
  outer.time_taken_ns = stored.time_taken_ns;
}

}  // namespace libtrace
