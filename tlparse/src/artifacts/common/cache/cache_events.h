// Cache lookups of one process while its log is read.
//
// A lookup shows up as an artifact (fx_graph_cache_hit, …) and, when it was made by a compile, as
// an instant chromium event of nearly the same name just before it; lookups inside an AOTAutograd
// hit have the artifact only, disabled caches the instant only. One lookup is one row: an instant
// makes one only if no artifact of the same lookup turns up before the process ends.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "artifacts/artifact.h"
#include "enums/cache_event.h"

namespace tlparse {

// The parts of a name like fx_graph_cache_miss.
struct CacheEventName {
  std::string_view layer;           // fx_graph, aotautograd, … ; "autograd" is aotautograd
  std::optional<CacheState> state;  // nothing for *_cache_hash: its payload has the state
};
// Nothing if the name is not that of a cache lookup.
std::optional<CacheEventName> ParseCacheEventName(std::string_view name);
// Whether PyTorch or libtrace has a cache that writes artifacts of this layer. Other programs may
// have more.
bool IsKnownCacheLayer(std::string_view layer);
// The known layer that differs from `layer` in one character; empty: none.
std::string_view SimilarCacheLayer(std::string_view layer);

// What the artifact and the instant of one lookup share.
struct CacheLookupId {
  std::string layer;
  CacheState state = CacheState::kMiss;
  std::string key;
  std::optional<std::int64_t> event_time_ns;
  bool operator==(const CacheLookupId&) const = default;
};

// What a payload says of a lookup; strings and component sets are stored already.
struct CacheInfo {
  CacheState state = CacheState::kMiss;
  ComponentsState components_state = ComponentsState::kEmpty;
  std::optional<std::int64_t> component_set_id;
  std::optional<std::int64_t> key_id;
  std::string key;
  std::optional<std::int64_t> event_time_ns;
  std::optional<std::int64_t> time_saved_ns;
  std::optional<std::int64_t> time_taken_ns;
  std::optional<TextId> detail_id;
  std::optional<TextId> guard_expression_id;
  std::optional<TextId> bypass_reason_id;
  std::optional<TextId> remote_error_id;
  std::optional<std::int64_t> waited_ns;
  std::optional<TextId> wait_given_up_id;
};

// An unfinished row of cache_event_row.
struct CacheEvent {
  std::int64_t id = 0;
  std::int64_t record_id = 0;
  std::optional<std::int64_t> compile_id;
  std::optional<std::int64_t> graph_id;
  TextId layer_id = 0;
  std::optional<std::int64_t> parent_id;
  CacheInfo info;
};

// An instant whose artifact has not been seen.
struct CacheInstant {
  CacheLookupId lookup;
  std::int64_t record_id = 0;
  // Of a payload that is kept (IngestContext::KeepPayload); 0: `lookup` has all that it says
  std::int64_t payload_id = 0;
  bool is_damaged = false;  // the payload does not have the hash that its record claims
  std::optional<std::int64_t> compile_id;
  std::optional<std::int64_t> graph_id;
};

// An FX lookup whose AOTAutograd lookup is not known yet.
struct PendingFxEvent {
  CacheEvent event;
  std::string aot_number;   // "7" of the AOT id 7_forward; "" if not in the code
  bool is_forward = false;  // of a graph that has a backward
  bool is_backward = false;
  bool is_written = false;  // its row is in the database, without parent
};

// FX lookups and the AOTAutograd lookup around them, of one compile and subgraph, in the order of the log:
//
//   AOT miss, FX miss    from 2.9 on          FX hit, AOT hit    every version
//   FX miss, AOT miss    before 2.9
//
// The FX lookup of a lazy backward follows when the backward is compiled, that is after other compiles; the parts of a DDP
// compile compile their backwards in reverse order.
struct LookupScope {
  std::int64_t open_aot_id = 0;  // a miss or bypass whose FX lookups follow; 0: none
  std::int64_t latest_aot_id = 0;
  bool pending_was_compiled = false;  // one of `pending` had an instant
  std::vector<PendingFxEvent> pending;
  std::map<std::string, std::int64_t, std::less<>> parent_by_aot_number;
  std::vector<std::int64_t> awaits_backward;      // AOT lookups with a forward, latest last
  std::unordered_set<std::int64_t> has_backward;  // those of them whose backward was seen
};

struct CacheLookups {
  std::vector<CacheInstant> instants;    // whose artifact may still follow; the latest few
  std::vector<CacheInstant> settled;     // that have none
  std::vector<CacheLookupId> artifacts;  // without instant so far; the latest few
  std::map<std::pair<const CompileState*, std::string>, LookupScope> scopes;
};

// To be called for every instant chromium event (ph "i"); does nothing unless it is of a cache
// lookup. `args` is the event's member of that name.
void NoteInstantCacheEvent(const Record& record, std::string_view name,
                           const simdjson::dom::object& args, IngestContext& context);

// The artifact of a lookup was read: removes its instant. True if there was one.
bool TakeInstant(ProcessState& process, const CacheLookupId& lookup, IngestContext& context);

}  // namespace tlparse
