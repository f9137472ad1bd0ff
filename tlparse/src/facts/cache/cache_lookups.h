// The cache lookups of a job, and which lookups of different ranks are the same one: slot, layer,
// direction, position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifacts/common/cache/key_set.h"
#include "base/result.h"
#include "enums/cache_event.h"
#include "facts/job/job.h"
#include "facts/job/job_graphs.h"

namespace tlparse {

struct JobLookup {
  std::int64_t id = 0;
  std::int64_t key_id = 0;  // cache_key_row.id; 0: no key
  KeySet set;  // components of the lookup, else of another lookup with this key; set_id 0: unknown
  std::int64_t guard_id = 0;          // text id of the guard that failed; 0: none
  std::int64_t bypass_id = 0;         // text id of the reason; 0: none
  std::int64_t remote_error_id = 0;   // text id of a remote store's error; 0: none
  std::int64_t waited_ns = 0;         // for another one that compiled the key
  bool has_given_up_waiting = false;  // and compiled it as well
  std::int64_t time_saved_ns = 0;     // 0: unknown
  std::int64_t time_taken_ns = 0;     // 0: unknown
  // Of the lookup that this one is a part of; 0: of none, and unknown.
  std::int64_t outer_layer_id = 0;
  std::int64_t outer_saved_ns = 0, outer_taken_ns = 0;
  std::int64_t event_time_ns = 0;  // 0: unknown
  std::int32_t compile = 0;        // index into Job::compiles
  std::int32_t lookup_slot = 0;
  RankIndex participant = 0;
  CacheState state = CacheState::kMiss;
};

struct LookupSlot {
  std::int32_t slot = 0;
  std::int64_t layer_id = 0;
  Direction direction = Direction::kUnknown;
  std::int32_t ordinal = 0;           // among the lookups of that compile, layer and direction
  std::vector<std::int32_t> lookups;  // of all ranks, by participant
};

class LookupIndex {
 public:
  static Result<LookupIndex> Load(Database& database, const Job& job, const JobGraphs& graphs);
  // Of a part of the job `whole`, whose lookups these are.
  LookupIndex Part(const Job& whole, const Job& part) const;

  const std::vector<JobLookup>& lookups() const { return lookups_; }
  const std::vector<LookupSlot>& slots() const { return slots_; }
  // Slots in the order of the job's compiles; AOTAutograd before FX, forward before backward.
  const std::vector<std::int32_t>& order() const { return order_; }
  const std::string& LayerName(std::int64_t layer_id) const;
  // "0/0 forward fx_graph [backward 2]"
  std::string Title(const Job& job, std::int32_t lookup_slot) const;

 private:
  class Maker;
  // The lookups of each slot by participant, and `order_`.
  void Sort(const Job& job);

  std::vector<JobLookup> lookups_;
  std::vector<LookupSlot> slots_;
  std::vector<std::int32_t> order_;
  std::unordered_map<std::int64_t, std::string> layers_;
};

// The string of a text id; empty for 0.
Result<std::string> TextOf(Database& database, std::int64_t text_id);

}  // namespace tlparse
