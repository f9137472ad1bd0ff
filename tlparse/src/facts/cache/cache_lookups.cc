#include "facts/cache/cache_lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace tlparse {

Result<std::string> TextOf(Database& database, std::int64_t text_id) {
  if (text_id == 0) return std::string();
  return database.QueryText("SELECT text FROM text_row WHERE id = ?", text_id);
}

namespace {

using SetsOfKey = std::unordered_multimap<std::int64_t, KeySet>;

Result<SetsOfKey> LoadSetsOfKeys(Database& database, const Job& job) {
  SetsOfKey sets;
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT key_id, component_set_id, device_index FROM cache_key_set_row "
                       "WHERE key_id IN (SELECT key_id FROM cache_event_row WHERE " +
                       job.InLogs("record_id") + ")"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return sets;
    sets.emplace(rows.Int(0), KeySet{rows.Int(1), rows.OptionalInt(2)});
  }
}

// A lookup from a row of the query in LookupIndex::Load, without its place in the job.
JobLookup ReadLookup(const Statement& rows, const SetsOfKey& sets) {
  JobLookup lookup;
  lookup.id = rows.Int(0);
  lookup.state = static_cast<CacheState>(rows.Int(4));
  lookup.key_id = rows.Int(5);
  lookup.set.set_id = rows.Int(6);
  const auto [first, last] = sets.equal_range(lookup.key_id);
  for (auto set = first; set != last; ++set) {
    if (lookup.set.set_id == 0 || lookup.set.set_id == set->second.set_id) lookup.set = set->second;
  }
  lookup.guard_id = rows.Int(7);
  lookup.bypass_id = rows.Int(8);
  lookup.time_saved_ns = rows.Int(9);
  lookup.time_taken_ns = rows.Int(10);
  lookup.event_time_ns = rows.Int(11);
  lookup.remote_error_id = rows.Int(12);
  lookup.waited_ns = rows.Int(13);
  lookup.has_given_up_waiting = !rows.IsNull(14);
  lookup.outer_layer_id = rows.Int(15);
  lookup.outer_saved_ns = rows.Int(16);
  lookup.outer_taken_ns = rows.Int(17);
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT e.id, e.compile_id, "
          "e.graph_id, e.layer_id, e.state, e.key_id, e.component_set_id, e.guard_expression_id, "
          "e.bypass_reason_id, e.time_saved_ns, e.time_taken_ns, e.event_time_ns, "
          "e.remote_error_id, e.waited_ns, e.wait_given_up_id, o.layer_id, o.time_saved_ns, "
          "o.time_taken_ns "
          "FROM cache_event_row e LEFT JOIN cache_event_row o ON o.id = e.parent_event_id WHERE " +
          job.InWholeRecords("e.record_id") + " ORDER BY e.record_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    if (rows.IsNull(1)) {
      ++result.unplaced_count_;
      continue;
    }
    const JobCompile* compile = job.FindCompile(rows.Int(1));
    if (compile == nullptr) continue;
    JobLookup lookup = ReadLookup(rows, sets);
    lookup.compile = static_cast<std::int32_t>(compile - job.compiles().data());
    lookup.participant = compile->participant;
    const JobGraph* graph = rows.IsNull(2) ? nullptr : graphs.Find(rows.Int(2));
    const Direction direction = graph == nullptr ? Direction::kUnknown : graph->direction;
    const std::int64_t layer = rows.Int(3);
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
