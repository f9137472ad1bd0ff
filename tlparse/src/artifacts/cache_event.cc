// Cache lookups: fx_graph_cache_{hit,miss,bypass}, aotautograd_cache_*, fx_graph_bundled_cache_hit,
// the *_cache_hash spellings of 2.6 and 2024, and whatever other cache writes artifacts of such
// names (torch/_inductor/compile_fx.py, torch/_functorch/_aot_autograd/autograd_cache.py). The
// payload is the cache's own account ("cache_info") of the lookup.
#include "rows/cache_event.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "artifacts/common/cache/cache_events.h"
#include "artifacts/common/cache/component_lines.h"
#include "artifacts/common/cache/component_sets.h"
#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/json_members.h"
#include "base/json_count.h"
#include "store/database.h"

namespace tlparse {
namespace {

// A backward that is compiled with its forward (dynamic shapes in 2.6) follows it at once.
constexpr std::ptrdiff_t kMaxEagerDistance = 4;
// Parsed payloads that are kept: ranks log equal payloads at about the same place of their logs. One
// that was dropped is parsed again.
constexpr std::size_t kMaxKnown = 8192;

// The AOTAutograd lookup of a backward that was compiled on its own: by its AOT number, unless that
// one has a backward already (code out of the cache has the number of where it was made); else the
// latest forward without backward. 0: none.
std::int64_t ParentOfBackward(LookupScope& scope, const PendingFxEvent& fx) {
  if (auto sibling = scope.parent_by_aot_number.find(fx.aot_number);
      sibling != scope.parent_by_aot_number.end()) {
    if (scope.has_backward.insert(sibling->second).second) return sibling->second;
  }
  while (!scope.awaits_backward.empty()) {
    const std::int64_t latest = scope.awaits_backward.back();
    scope.awaits_backward.pop_back();
    if (scope.has_backward.insert(latest).second) return latest;
  }
  return 0;
}

void Adopt(LookupScope& scope, std::int64_t aot_id, PendingFxEvent& fx) {
  fx.event.parent_id = aot_id;
  if (fx.is_forward) scope.awaits_backward.push_back(aot_id);
  if (fx.is_backward) scope.has_backward.insert(aot_id);
  if (!fx.aot_number.empty() && !fx.is_backward)
    scope.parent_by_aot_number.emplace(fx.aot_number, aot_id);
}

std::optional<std::int64_t> MillisecondsToNs(std::optional<double> milliseconds) {
  if (!milliseconds || !(*milliseconds > -9e12 && *milliseconds < 9e12)) return std::nullopt;
  return static_cast<std::int64_t>(*milliseconds * 1e6);
}

class CacheEvents final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<CacheEventRow>();
    sets_.emplace(tables);
  }
  Result<void> Load(Database& database) override { return sets_->Load(database); }
  Result<void> Ingest(const Record& record, IngestContext& context) override;
  Result<void> ProcessPaused(ProcessState& process, IngestContext& context) override;
  Result<void> ProcessEnded(ProcessState& process, IngestContext& context) override;

 private:
  Result<void> ReadRecord(const Record& record, const CacheEventName& name, CacheInfo& info,
                          IngestContext& context);
  static PendingFxEvent MakeFx(const Record& record, CacheEvent event, IngestContext& context);
  CacheInfo ReadInfo(const CacheEventName& name, const simdjson::dom::object& payload,
                     bool is_damaged, IngestContext& context);
  void ReadComponents(const JsonMembers& members, CacheInfo& info, IngestContext& context);
  void ReadReason(const JsonMembers& members, CacheInfo& info, IngestContext& context);
  CacheInfo InfoOfInstant(const CacheInstant& instant, IngestContext& context);
  void PlaceFx(const Record& record, PendingFxEvent fx, bool was_compiled, IngestContext& context);
  void PlaceAot(const Record& record, const CacheEvent& event, bool comes_last,
                IngestContext& context);
  void Write(const CacheEvent& event, IngestContext& context);

  std::optional<ComponentSets> sets_;
  ComponentLines lines_;
  simdjson::dom::parser parser_;  // for the payloads of instants
  // By payload, by the state in the artifact's name, which is used if the payload has none, and by
  // whether the payload has the hash that its record claims.
  using InfoKey = std::tuple<std::int64_t, std::optional<CacheState>, bool>;
  std::map<InfoKey, CacheInfo> known_;
};

void CacheEvents::Write(const CacheEvent& event, IngestContext& context) {
  const CacheInfo& info = event.info;
  context.rows().Add(CacheEventRow{.id = event.id,
                                   .record_id = event.record_id,
                                   .compile_id = event.compile_id,
                                   .graph_id = event.graph_id,
                                   .layer_id = event.layer_id,
                                   .state = info.state,
                                   .key_id = info.key_id,
                                   .components_state = info.components_state,
                                   .component_set_id = info.component_set_id,
                                   .parent_event_id = event.parent_id,
                                   .event_time_ns = info.event_time_ns,
                                   .time_saved_ns = info.time_saved_ns,
                                   .time_taken_ns = info.time_taken_ns,
                                   .detail_id = info.detail_id,
                                   .guard_expression_id = info.guard_expression_id,
                                   .bypass_reason_id = info.bypass_reason_id,
                                   .remote_error_id = info.remote_error_id,
                                   .waited_ns = info.waited_ns,
                                   .wait_given_up_id = info.wait_given_up_id});
}

void CacheEvents::ReadComponents(const JsonMembers& members, CacheInfo& info,
                                 IngestContext& context) {
  const std::optional<simdjson::dom::element> list = members.Any("components");
  if (!list) return;
  simdjson::dom::array lines;
  if (list->get(lines) != simdjson::SUCCESS) {
    members.Odd("components", "a list");
    info.components_state = ComponentsState::kUnparsed;
    return;
  }
  const bool is_complete = lines_.Read(lines);
  if (!is_complete) {
    members.Odd("components", "a list of component lines throughout");
    info.components_state = ComponentsState::kUnparsed;
  } else if (!lines_.components().empty()) {
    info.components_state = ComponentsState::kFull;
  }
  if (lines_.components().empty()) return;
  const KeySet set =
      sets_->Intern(context.rows(), context.texts(), lines_.components(), info.key_id.has_value());
  info.component_set_id = set.set_id;
  if (info.key_id) sets_->LinkKey(context.rows(), *info.key_id, set);
}

// AOTAutograd may give an empty reason beside a full traceback; dynamo and precompile use other
// members.
void CacheEvents::ReadReason(const JsonMembers& members, CacheInfo& info, IngestContext& context) {
  std::optional<std::string_view> reason = members.String("cache_bypass_reason");
  if (!reason) reason = members.String("_reason");
  if (reason && !reason->empty()) {
    info.bypass_reason_id = context.Text(*reason);
    return;
  }
  std::string text(members.String("cache_bypass_exception_type").value_or(""));
  if (const auto lines = members.Array("cache_bypass_traceback")) {
    for (const simdjson::dom::element& element : *lines) {
      std::string_view line;
      if (element.get(line) != simdjson::SUCCESS) continue;
      if (!text.empty()) text += '\n';
      text += line;
    }
  }
  if (const auto backend = members.String("missing_backend"))
    text = "missing backend " + std::string(*backend);
  info.bypass_reason_id = context.OptionalText(text);
}

// A payload that does not have its hash may have other bytes than PyTorch wrote: its components are
// not stored, as they would stand for those of every log that names the same hashes.
CacheInfo CacheEvents::ReadInfo(const CacheEventName& name, const simdjson::dom::object& payload,
                                bool is_damaged, IngestContext& context) {
  const JsonMembers members(payload, context, ImportCode::kBadPayload);
  CacheInfo info;
  const std::string_view state = members.String("cache_state").value_or("");
  info.state = state == "hit"      ? CacheState::kHit
               : state == "miss"   ? CacheState::kMiss
               : state == "bypass" ? CacheState::kBypass
                                   : name.state.value_or(CacheState::kMiss);
  const std::optional<std::string_view> detail = members.String("cache_status_detailed");
  if (detail == "guard_miss" && info.state == CacheState::kMiss)
    info.state = CacheState::kGuardMiss;
  if (detail == "remote_error" && info.state == CacheState::kMiss)
    info.state = CacheState::kRemoteError;
  info.detail_id = context.OptionalText(detail.value_or(""));
  info.remote_error_id = context.OptionalText(members.String("remote_error").value_or(""));
  info.waited_ns = members.Int("waited_ns");
  info.wait_given_up_id = context.OptionalText(members.String("wait_given_up").value_or(""));
  if (!name.state && state.empty())
    context.Log(ImportCode::kAssumedState, "no cache_state: the lookup is taken for a miss");
  info.key = members.String("key").value_or("");
  info.key_id = sets_->KeyId(context.rows(), info.key);
  info.event_time_ns = members.Int("cache_event_time");
  info.time_saved_ns = members.Int("time_saved_ns");
  if (!info.time_saved_ns) info.time_saved_ns = MillisecondsToNs(members.Number("time_saved_ms"));
  info.time_taken_ns = members.Int("time_taken_ns");
  info.guard_expression_id =
      context.OptionalText(members.String("cache_status_guard_expr").value_or(""));
  if (info.state == CacheState::kBypass) ReadReason(members, info, context);
  if (is_damaged) {
    info.components_state = ComponentsState::kUnparsed;
  } else {
    ReadComponents(members, info, context);
  }
  return info;
}

// On an error `info` has what the artifact's name says: that there was a lookup, and its result.
Result<void> CacheEvents::ReadRecord(const Record& record, const CacheEventName& name,
                                     CacheInfo& info, IngestContext& context) {
  info.state = name.state.value_or(CacheState::kMiss);
  if (record.payload_id == 0) return {};
  const bool is_damaged = record.payload_state == PayloadState::kMismatch;
  const InfoKey key(record.payload_id, name.state, is_damaged);
  if (const auto known = known_.find(key); known != known_.end()) {
    info = known->second;
    return {};
  }
  Result<simdjson::dom::object> payload = PayloadObject(context);
  if (!payload) {
    info.components_state = ComponentsState::kUnparsed;
    return tl::unexpected<Error>(std::move(payload).error());
  }
  info = ReadInfo(name, *payload, is_damaged, context);
  if (known_.size() >= kMaxKnown) known_.clear();
  known_.emplace(key, info);
  return {};
}

// The lookup with its graph, if it belongs to a compile.
PendingFxEvent CacheEvents::MakeFx(const Record& record, CacheEvent event, IngestContext& context) {
  PendingFxEvent fx;
  if (record.compile != nullptr) {
    GraphState& graph = context.graphs().ForCacheEvent(record, context);
    event.graph_id = graph.id;
    if (graph.cache_key.empty()) graph.cache_key = event.info.key;
    fx.aot_number = graph.aot_id.substr(0, graph.aot_id.find('_'));
    fx.is_forward = graph.aot_id.ends_with("_forward");
    fx.is_backward = graph.aot_id.ends_with("_backward") ||
                     (graph.aot_id.empty() && record.compile->has_metrics);
  }
  fx.event = std::move(event);
  return fx;
}

Result<void> CacheEvents::Ingest(const Record& record, IngestContext& context) {
  const std::optional<CacheEventName> name = ParseCacheEventName(record.name);
  if (!name)
    return Fail(ErrorCode::kBadJson,
                "the name does not end in _cache_hit, _cache_miss, _cache_bypass or _cache_hash");
  if (record.payload_id == 0 && !name->state)
    return Fail(ErrorCode::kBadJson, "no payload says how the lookup ended");
  CacheEvent event;
  const Result<void> outcome = ReadRecord(record, *name, event.info, context);
  if (!outcome && !name->state) return outcome;
  event.record_id = record.id;
  event.compile_id = record.compile_row_id();
  event.id = context.NextId<CacheEventRow>();
  event.layer_id = context.Text(name->layer);
  if (event.info.event_time_ns)
    context.NoteTime(*event.info.event_time_ns / 1000, IngestContext::TimeBasis::kCacheEventTime);

  const bool is_fx = name->layer == "fx_graph" || name->layer == "fx_graph_bundled";
  // The instant event has one kind of miss only.
  const bool is_miss =
      event.info.state == CacheState::kGuardMiss || event.info.state == CacheState::kRemoteError;
  const CacheState state = is_miss ? CacheState::kMiss : event.info.state;
  const bool had_instant = TakeInstant(
      *record.process, {std::string(name->layer), state, event.info.key, event.info.event_time_ns},
      context);
  if (is_fx) {
    PlaceFx(record, MakeFx(record, std::move(event), context), had_instant, context);
  } else if (name->layer == "aotautograd") {
    PlaceAot(record, event, !name->state || event.info.state == CacheState::kHit, context);
  } else {
    Write(event, context);
  }
  return outcome;
}

// An FX lookup: its AOTAutograd lookup is known, or comes later, or there is none. One without
// instant was made while an entry of the AOT cache was loaded, whose record follows.
void CacheEvents::PlaceFx(const Record& record, PendingFxEvent fx, bool was_compiled,
                          IngestContext& context) {
  if (record.compile == nullptr) return Write(fx.event, context);
  LookupScope& scope = record.process->families.Get<CacheLookups>()
                           .scopes[{record.compile, std::string(record.subgraph_name)}];
  std::int64_t parent_id = was_compiled ? scope.open_aot_id : 0;
  if (was_compiled && fx.is_backward) {
    const auto is_its_forward = [&](const PendingFxEvent& other) {
      return other.aot_number == fx.aot_number;
    };
    const auto nearest = scope.pending.end() -
                         std::min<std::ptrdiff_t>(std::ssize(scope.pending), kMaxEagerDistance);
    const bool is_eager = std::any_of(nearest, scope.pending.end(), is_its_forward);
    if (const std::int64_t found = is_eager ? 0 : ParentOfBackward(scope, fx); found != 0)
      parent_id = found;
  }
  if (parent_id == 0) {
    scope.pending_was_compiled |= was_compiled;
    scope.pending.push_back(std::move(fx));
    return;
  }
  Adopt(scope, parent_id, fx);
  Write(fx.event, context);
}

// An AOTAutograd lookup takes the FX lookups before it that have no parent, and keeps itself ready
// for those to come unless its record is known to come last.
void CacheEvents::PlaceAot(const Record& record, const CacheEvent& event, bool comes_last,
                           IngestContext& context) {
  Write(event, context);
  if (record.compile == nullptr) return;
  LookupScope& scope = record.process->families.Get<CacheLookups>()
                           .scopes[{record.compile, std::string(record.subgraph_name)}];
  comes_last |= scope.pending_was_compiled;
  for (PendingFxEvent& fx : scope.pending) {
    Adopt(scope, event.id, fx);
    Write(fx.event, context);
  }
  scope.pending.clear();
  scope.pending_was_compiled = false;
  scope.latest_aot_id = event.id;
  scope.open_aot_id = comes_last ? 0 : event.id;
}

CacheInfo CacheEvents::InfoOfInstant(const CacheInstant& instant, IngestContext& context) {
  CacheInfo info;
  info.state = instant.lookup.state;
  info.key = instant.lookup.key;
  info.key_id = sets_->KeyId(context.rows(), info.key);
  info.event_time_ns = instant.lookup.event_time_ns;
  if (instant.lookup.state == CacheState::kDisabled) return info;
  info.components_state = ComponentsState::kUnparsed;
  const std::string_view text = context.KeptPayload(instant.payload_id);
  simdjson::dom::object args;
  if (!text.empty() && !HasTooManyJsonValues(text) &&
      parser_.parse(text.data(), text.size()).at_key("args").get(args) == simdjson::SUCCESS) {
    info =
        ReadInfo({instant.lookup.layer, instant.lookup.state}, args, instant.is_damaged, context);
  }
  if (instant.payload_id != 0) context.ReleasePayload(instant.payload_id);
  return info;
}

// Lookups that wait for the one around them.
Result<void> CacheEvents::ProcessPaused(ProcessState& process, IngestContext& context) {
  for (auto& [owner, scope] : process.families.Get<CacheLookups>().scopes) {
    for (PendingFxEvent& fx : scope.pending) {
      if (!fx.is_written) Write(fx.event, context);
      fx.is_written = true;
    }
  }
  return {};
}

Result<void> CacheEvents::ProcessEnded(ProcessState& process, IngestContext& context) {
  auto& lookups = process.families.Get<CacheLookups>();
  for (auto& [owner, scope] : lookups.scopes) {
    for (PendingFxEvent& fx : scope.pending) {
      // After an AOTAutograd lookup that came last: a lazy backward whose code does not tell its
      // number.
      if (scope.latest_aot_id != 0) fx.event.parent_id = scope.latest_aot_id;
      Write(fx.event, context);
    }
  }
  std::move(lookups.instants.begin(), lookups.instants.end(), std::back_inserter(lookups.settled));
  for (const CacheInstant& instant : lookups.settled) {
    CacheEvent event;
    event.id = context.NextId<CacheEventRow>();
    event.record_id = instant.record_id;
    event.compile_id = instant.compile_id;
    event.graph_id = instant.graph_id;
    event.layer_id = context.Text(instant.lookup.layer);
    event.info = InfoOfInstant(instant, context);
    Write(event, context);
  }
  process.families.Drop<CacheLookups>();
  return {};
}

}  // namespace

TLPARSE_ARTIFACT(cache_event, CacheEvents, StandsAlone("artifact/dynamo_cache_bypass"),
                 "artifact/*_cache_hit", "artifact/*_cache_miss", "artifact/*_cache_bypass",
                 "artifact/aotautograd_cache_hash", "artifact/fx_graph_cache_hash")

}  // namespace tlparse
