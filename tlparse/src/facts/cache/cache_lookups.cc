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

// Lookups come in the order of the log.
class LookupIndex::Maker {
 public:
  explicit Maker(const Job& job) : job_(job) {}

  void Add(const JobCompile& compile, JobLookup lookup, std::int64_t layer, Direction direction) {
    lookup.compile = static_cast<std::int32_t>(&compile - job_.compiles().data());
    lookup.participant = compile.participant;
    const std::int32_t ordinal = count_[{lookup.compile, layer, direction}]++;
    const auto [found, is_new] =
        places_.try_emplace({compile.slot, layer, direction, ordinal},
                            static_cast<std::int32_t>(result_.slots_.size()));
    if (is_new) result_.slots_.push_back({compile.slot, layer, direction, ordinal, {}});
    lookup.lookup_slot = found->second;
    result_.slots_[static_cast<std::size_t>(found->second)].lookups.push_back(
        static_cast<std::int32_t>(result_.lookups_.size()));
    result_.lookups_.push_back(lookup);
  }

  LookupIndex Take(std::unordered_map<std::int64_t, std::string> layers) {
    result_.layers_ = std::move(layers);
    result_.Sort(job_);
    return std::move(result_);
  }

 private:
  const Job& job_;
  LookupIndex result_;
  std::map<std::tuple<std::int32_t, std::int64_t, Direction, std::int32_t>, std::int32_t> places_;
  // Within each compile
  std::map<std::tuple<std::int32_t, std::int64_t, Direction>, std::int32_t> count_;
};

// Those that belong to no compile are left out.
Result<LookupIndex> LookupIndex::Load(Database& database, const Job& job, const JobGraphs& graphs) {
  Maker maker(job);
  ASSIGN_OR_RETURN(const SetsOfKey sets, LoadSetsOfKeys(database, job));
  std::unordered_map<std::int64_t, std::string> layers;
  FOR_EACH_ROW(const CacheLookup& row,
               Query<CacheLookup>(database, {.in_logs = job.InWholeRecords("e.record_id")})) {
    const JobCompile* const compile = row.compile_id ? job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr) continue;
    const JobGraph* const graph = row.graph_id ? graphs.Find(*row.graph_id) : nullptr;
    const auto [layer, is_new] = layers.try_emplace(row.layer_id);
    if (is_new) {
      ASSIGN_OR_RETURN(layer->second, TextOf(database, row.layer_id));
    }
    maker.Add(*compile, LookupOf(row, sets), row.layer_id,
              graph == nullptr ? Direction::kUnknown : graph->direction);
  }
  return maker.Take(std::move(layers));
}

LookupIndex LookupIndex::Part(const Job& whole, const Job& part) const {
  Maker maker(part);
  for (const JobLookup& lookup : lookups_) {
    const std::int64_t compile_id = whole.compiles()[static_cast<std::size_t>(lookup.compile)].id;
    const LookupSlot& slot = slots_[static_cast<std::size_t>(lookup.lookup_slot)];
    if (const JobCompile* const compile = part.FindCompile(compile_id))
      maker.Add(*compile, lookup, slot.layer_id, slot.direction);
  }
  return maker.Take(layers_);
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
