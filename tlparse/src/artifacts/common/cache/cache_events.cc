#include "artifacts/common/cache/cache_events.h"

#include <algorithm>
#include <iterator>

#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/json_members.h"
#include "log/damaged_header.h"

namespace tlparse {

namespace {

// Artifacts that came before their instant are forgotten after this many others: no known version
// writes them in that order, so what piles up are lookups without any instant.
constexpr std::size_t kMaxEarlyArtifacts = 16;
// The artifact follows its instant at once; an instant followed by this many others has none.
// Its payload is given up.
constexpr std::size_t kMaxOpenInstants = 64;

// libtrace writes the instant of a miss before it compiles; compiling may show that what comes of it
// cannot be cached.
bool IsSameLookup(const CacheLookupId& instant, const CacheLookupId& artifact) {
  if (instant == artifact) return true;
  CacheLookupId missed = artifact;
  missed.state = CacheState::kMiss;
  return artifact.state == CacheState::kBypass && !artifact.key.empty() && artifact.event_time_ns &&
         instant == missed;
}

}  // namespace

std::optional<CacheEventName> ParseCacheEventName(std::string_view name) {
  struct Suffix {
    std::string_view text;
    std::optional<CacheState> state;
  };
  static constexpr Suffix kSuffixes[] = {{"_cache_hit", CacheState::kHit},
                                         {"_cache_miss", CacheState::kMiss},
                                         {"_cache_bypass", CacheState::kBypass},
                                         {"_cache_disabled", CacheState::kDisabled},
                                         {"_cache_hash", std::nullopt}};
  for (const Suffix& suffix : kSuffixes) {
    if (!name.ends_with(suffix.text) || name.size() == suffix.text.size()) continue;
    CacheEventName parsed{name.substr(0, name.size() - suffix.text.size()), suffix.state};
    if (parsed.layer == "autograd") parsed.layer = "aotautograd";
    return parsed;
  }
  return std::nullopt;
}

namespace {

// As the artifacts name them.
constexpr std::string_view kLayers[] = {
    "fx_graph", "fx_graph_bundled", "aotautograd",          "autograd",
    "dynamo",   "precompile",       "libtrace_aotinductor", "libtrace_torchscript"};

}  // namespace

bool IsKnownCacheLayer(std::string_view layer) {
  return std::find(std::begin(kLayers), std::end(kLayers), layer) != std::end(kLayers);
}

std::string_view SimilarCacheLayer(std::string_view layer) {
  const auto* const found =
      std::find_if(std::begin(kLayers), std::end(kLayers),
                   [&](std::string_view known) { return DiffersInOneCharacter(known, layer); });
  return found == std::end(kLayers) ? std::string_view() : *found;
}

void NoteInstantCacheEvent(const Record& record, std::string_view name,
                           const simdjson::dom::object& args, IngestContext& context) {
  const std::optional<CacheEventName> parsed = ParseCacheEventName(name);
  if (!parsed || !parsed->state || record.process == nullptr) return;
  CacheInstant instant;
  instant.lookup = {std::string(parsed->layer), *parsed->state,
                    std::string(StringMember(args, "key")), std::nullopt};
  simdjson::dom::element time;
  if (args.at_key("cache_event_time").get(time) == simdjson::SUCCESS)
    instant.lookup.event_time_ns = AsInt(time);

  CacheLookups& lookups = record.process->families.Get<CacheLookups>();
  if (auto early = std::find(lookups.artifacts.begin(), lookups.artifacts.end(), instant.lookup);
      early != lookups.artifacts.end()) {
    lookups.artifacts.erase(early);
    return;
  }
  instant.record_id = record.id;
  instant.compile_id = record.compile_row_id();
  if (parsed->layer == "fx_graph") {
    if (const GraphState* graph = context.graphs().Current(record, true))
      instant.graph_id = graph->id;
  }
  if (instant.lookup.state == CacheState::kDisabled) {
    lookups.settled.push_back(std::move(instant));
    return;
  }
  if (record.payload_id != 0) {
    context.KeepPayload();
    instant.payload_id = record.payload_id;
    instant.is_damaged = record.payload_state == PayloadState::kMismatch;
  }
  lookups.instants.push_back(std::move(instant));
  if (lookups.instants.size() <= kMaxOpenInstants) return;
  CacheInstant& oldest = lookups.instants.front();
  if (oldest.payload_id != 0) context.ReleasePayload(oldest.payload_id);
  lookups.settled.push_back(std::move(oldest));
  lookups.instants.erase(lookups.instants.begin());
}

bool TakeInstant(ProcessState& process, const CacheLookupId& lookup, IngestContext& context) {
  CacheLookups& lookups = process.families.Get<CacheLookups>();
  for (auto instant = lookups.instants.rbegin(); instant != lookups.instants.rend(); ++instant) {
    if (!IsSameLookup(instant->lookup, lookup)) continue;
    if (instant->payload_id != 0) context.ReleasePayload(instant->payload_id);
    lookups.instants.erase(std::next(instant).base());
    return true;
  }
  lookups.artifacts.push_back(lookup);
  if (lookups.artifacts.size() > kMaxEarlyArtifacts)
    lookups.artifacts.erase(lookups.artifacts.begin());
  return false;
}

}  // namespace tlparse
