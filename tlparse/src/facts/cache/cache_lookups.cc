#include "facts/cache/cache_lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "queries/facts/cache/cache_lookups.h"

namespace tlparse {

Result<std::string> TextOf(Database& database, std::int64_t text_id) {
  if (text_id == 0) return std::string();
  return database.QueryText("SELECT text FROM text_row WHERE id = ?", text_id);
}

namespace {

using SetsOfKey = std::unordered_multimap<std::int64_t, KeySet>;

Result<SetsOfKey> LoadSetsOfKeys(Database& database, const Job& job) {
  SetsOfKey sets;
  FOR_EACH_ROW(const ComponentSetOfKey& row,
               Query<ComponentSetOfKey>(database, {.in_logs = job.InLogs("record_id")})) {
    sets.emplace(row.key_id, KeySet{row.component_set_id, row.device_index});
  }
  return sets;
}

// A lookup without its place in the job.
JobLookup LookupOf(const CacheLookup& row, const SetsOfKey& sets) {
  JobLookup lookup;
  lookup.id = row.id;
  lookup.state = row.state;
  lookup.key_id = row.key_id.value_or(0);
  lookup.set.set_id = row.component_set_id.value_or(0);
  const auto [first, last] = sets.equal_range(lookup.key_id);
  for (auto set = first; set != last; ++set) {
    if (lookup.set.set_id == 0 || lookup.set.set_id == set->second.set_id) lookup.set = set->second;
  }
  lookup.guard_id = row.guard_expression_id.value_or(0);
  lookup.bypass_id = row.bypass_reason_id.value_or(0);
  lookup.time_saved_ns = row.time_saved_ns.value_or(0);
  lookup.time_taken_ns = row.time_taken_ns.value_or(0);
  lookup.event_time_ns = row.event_time_ns.value_or(0);
  lookup.remote_error_id = row.remote_error_id.value_or(0);
  lookup.waited_ns = row.waited_ns.value_or(0);
  lookup.has_given_up_waiting = row.wait_given_up_id.has_value();
  lookup.outer_layer_id = row.outer_layer_id.value_or(0);
  lookup.outer_saved_ns = row.outer_saved_ns.value_or(0);
  lookup.outer_taken_ns = row.outer_taken_ns.value_or(0);
  return lookup;
}

}  // namespace

Result<LookupIndex> LookupIndex::Load(Database& database, const Job& job, const JobGraphs& graphs) {
  LookupIndex result;
  ASSIGN_OR_RETURN(const SetsOfKey sets, LoadSetsOfKeys(database, job));
  using Place = std::tuple<std::int32_t, std::int64_t, Direction, std::int32_t>;
  std::map<Place, std::int32_t> places;
  // Within each compile
  std::map<std::tuple<std::int32_t, std::int64_t, Direction>, std::int32_t> count;
  FOR_EACH_ROW(const CacheLookup& row,
               Query<CacheLookup>(database, {.in_logs = job.InWholeRecords("e.record_id")})) {
    if (!row.compile_id) {
      ++result.unplaced_count_;
      continue;
    }
    const JobCompile* compile = job.FindCompile(*row.compile_id);
    if (compile == nullptr) continue;
    JobLookup lookup = LookupOf(row, sets);
    lookup.compile = static_cast<std::int32_t>(compile - job.compiles().data());
    lookup.participant = compile->participant;
    const JobGraph* graph = row.graph_id ? graphs.Find(*row.graph_id) : nullptr;
    const Direction direction = graph == nullptr ? Direction::kUnknown : graph->direction;
    const std::int64_t layer = row.layer_id;
    const std::int32_t ordinal = count[{lookup.compile, layer, direction}]++;
    const auto [found, is_new] =
        places.try_emplace({compile->slot, layer, direction, ordinal},
                           static_cast<std::int32_t>(result.slots_.size()));
    if (is_new) {
      result.slots_.push_back({compile->slot, layer, direction, ordinal, {}});
      if (result.layers_.count(layer) == 0) {
        ASSIGN_OR_RETURN(result.layers_[layer], TextOf(database, layer));
      }
    }
    lookup.lookup_slot = found->second;
    result.slots_[static_cast<std::size_t>(found->second)].lookups.push_back(
        static_cast<std::int32_t>(result.lookups_.size()));
    result.lookups_.push_back(lookup);
  }
  result.Sort(job);
  return result;
}

void LookupIndex::Sort(const Job& job) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    order_.push_back(static_cast<std::int32_t>(i));
    std::stable_sort(slots_[i].lookups.begin(), slots_[i].lookups.end(),
                     [&](std::int32_t a, std::int32_t b) {
                       return lookups_[static_cast<std::size_t>(a)].participant <
                              lookups_[static_cast<std::size_t>(b)].participant;
                     });
  }
  const auto key = [&](std::int32_t index) {
    const LookupSlot& slot = slots_[static_cast<std::size_t>(index)];
    return std::tuple(job.SlotPosition(slot.slot), LayerName(slot.layer_id), slot.direction,
                      slot.ordinal);
  };
  std::sort(order_.begin(), order_.end(),
            [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
}

const std::string& LookupIndex::LayerName(std::int64_t layer_id) const {
  static const std::string kNone;
  const auto found = layers_.find(layer_id);
  return found == layers_.end() ? kNone : found->second;
}

std::string LookupIndex::Title(const Job& job, std::int32_t lookup_slot) const {
  const LookupSlot& slot = slots_[static_cast<std::size_t>(lookup_slot)];
  std::string which(Name(slot.direction));
  if (slot.ordinal > 0) which += fmt::format("{}{}", which.empty() ? "" : " ", slot.ordinal + 1);
  return fmt::format("{} {}{}{}", job.slots()[static_cast<std::size_t>(slot.slot)].Title(),
                     LayerName(slot.layer_id), which.empty() ? "" : " ", which);
}

}  // namespace tlparse
