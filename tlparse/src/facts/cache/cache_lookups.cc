#include "facts/cache/cache_lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "queries/facts/cache/cache_lookups.h"

namespace tlparse {

Result<std::string> TextOf(Database& database, std::int64_t text_id) {
  if (text_id == 0) return std::string();
  return database.QueryText("SELECT text FROM text_row WHERE id = ?", text_id);
}

namespace {

// A lookup without its place in the job and the set of its key.
JobLookup LookupOf(const CacheLookup& row) {
  JobLookup lookup;
  lookup.id = row.id;
  lookup.state = row.state;
  // What the row does not have is 0.
  lookup.key_id = row.key_id;
  lookup.set.set_id = row.component_set_id;
  lookup.guard_id = row.guard_expression_id;
  lookup.bypass_id = row.bypass_reason_id;
  lookup.time_saved_ns = row.time_saved_ns;
  lookup.time_taken_ns = row.time_taken_ns;
  lookup.event_time_ns = row.event_time_ns;
  lookup.remote_error_id = row.remote_error_id;
  lookup.waited_ns = row.waited_ns;
  lookup.has_given_up_waiting = row.wait_given_up_id != 0;
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
    Kind& kind = KindOf(layer, direction);
    const std::int32_t ordinal = kind.counts[static_cast<std::size_t>(lookup.compile)]++;
    std::vector<std::int32_t>& places = kind.places[static_cast<std::size_t>(compile.slot)];
    if (static_cast<std::size_t>(ordinal) == places.size()) {
      places.push_back(static_cast<std::int32_t>(result_.slots_.size()));
      result_.slots_.push_back({compile.slot, layer, direction, ordinal, {}});
    }
    lookup.lookup_slot = places[static_cast<std::size_t>(ordinal)];
    result_.slots_[static_cast<std::size_t>(lookup.lookup_slot)].lookups.push_back(
        static_cast<std::int32_t>(result_.lookups_.size()));
    result_.lookups_.push_back(lookup);
  }

  Result<void> TakeSetsOfKeys(Database& database);
  // The lookup that was added last is a part of another one.
  void AddInner(std::int64_t outer_id) {
    inner_.emplace_back(result_.lookups_.size() - 1, outer_id);
  }
  Result<void> TakeOuter(Database& database);

  LookupIndex Take(std::unordered_map<std::int64_t, std::string> layers) {
    result_.layers_ = std::move(layers);
    result_.Sort(job_);
    return std::move(result_);
  }

 private:
  // The lookups of a layer and direction.
  struct Kind {
    std::int64_t layer;
    Direction direction;
    std::vector<std::int32_t> counts;               // by compile
    std::vector<std::vector<std::int32_t>> places;  // by slot: indices of lookup slots, by ordinal
  };

  Kind& KindOf(std::int64_t layer, Direction direction) {
    const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& one) {
      return one.layer == layer && one.direction == direction;
    });
    if (found != kinds_.end()) return *found;
    return kinds_.emplace_back(Kind{layer, direction,
                                    std::vector<std::int32_t>(job_.compiles().size()),
                                    std::vector<std::vector<std::int32_t>>(job_.slots().size())});
  }

  const Job& job_;
  LookupIndex result_;
  std::vector<Kind> kinds_;
  std::vector<std::pair<std::size_t, std::int64_t>> inner_;  // index, id of the outer one
};

// The components of a key, for its lookups that have none of their own; of their own set the device.
Result<void> LookupIndex::Maker::TakeSetsOfKeys(Database& database) {
  std::int64_t first = INT64_MAX, last = 0;
  for (const JobLookup& lookup : result_.lookups_) {
    if (lookup.key_id == 0) continue;
    first = std::min(first, lookup.key_id);
    last = std::max(last, lookup.key_id);
  }
  std::vector<std::pair<std::int64_t, KeySet>> sets;  // by key
  FOR_EACH_ROW(const ComponentSetOfKey& row,
               Query<ComponentSetOfKey>(database, {.first_key = first, .last_key = last}))
    sets.push_back({row.key_id, {row.component_set_id, row.device_index}});
  for (JobLookup& lookup : result_.lookups_) {
    auto set = std::lower_bound(sets.begin(), sets.end(), lookup.key_id,
                                [](const auto& one, std::int64_t key) { return one.first < key; });
    for (; set != sets.end() && set->first == lookup.key_id; ++set) {
      if (lookup.set.set_id == 0 || lookup.set.set_id == set->second.set_id)
        lookup.set = set->second;
    }
  }
  return {};
}

// Most of them are among the lookups.
Result<void> LookupIndex::Maker::TakeOuter(Database& database) {
  if (inner_.empty()) return {};
  std::unordered_map<std::int64_t, std::size_t> index;
  index.reserve(result_.lookups_.size());
  for (std::size_t i = 0; i < result_.lookups_.size(); ++i)
    index.emplace(result_.lookups_[i].id, i);
  ASSIGN_OR_RETURN(PreparedQuery<OuterLookup> others, PreparedQuery<OuterLookup>::Make(database));
  for (const auto& [inner, outer_id] : inner_) {
    JobLookup& lookup = result_.lookups_[inner];
    if (const auto found = index.find(outer_id); found != index.end()) {
      const JobLookup& outer = result_.lookups_[found->second];
      lookup.outer_layer_id = result_.slots_[static_cast<std::size_t>(outer.lookup_slot)].layer_id;
      lookup.outer_saved_ns = outer.time_saved_ns;
      lookup.outer_taken_ns = outer.time_taken_ns;
      continue;
    }
    FOR_EACH_ROW(const OuterLookup& row, others.Run({.id = outer_id})) {
      lookup.outer_layer_id = row.layer_id;
      lookup.outer_saved_ns = row.time_saved_ns;
      lookup.outer_taken_ns = row.time_taken_ns;
    }
  }
  return {};
}

// Those that belong to no compile are left out.
Result<LookupIndex> LookupIndex::Load(Database& database, const Job& job, const JobGraphs& graphs) {
  Maker maker(job);
  std::unordered_map<std::int64_t, std::string> layers;
  FOR_EACH_ROW(const CacheLookup& row,
               Query<CacheLookup>(database, {.in_logs = job.InWholeRecords("record_id")})) {
    const JobCompile* const compile = row.compile_id ? job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr) continue;
    const JobGraph* const graph = row.graph_id ? graphs.Find(*row.graph_id) : nullptr;
    const auto [layer, is_new] = layers.try_emplace(row.layer_id);
    if (is_new) {
      ASSIGN_OR_RETURN(layer->second, TextOf(database, row.layer_id));
    }
    maker.Add(*compile, LookupOf(row), row.layer_id,
              graph == nullptr ? Direction::kUnknown : graph->direction);
    if (row.parent_event_id != 0) maker.AddInner(row.parent_event_id);
  }
  RETURN_IF_ERROR(maker.TakeOuter(database));
  RETURN_IF_ERROR(maker.TakeSetsOfKeys(database));
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
    std::vector<std::int32_t>& own = slots_[i].lookups;
    const auto is_before = [&](std::int32_t a, std::int32_t b) {
      return lookups_[static_cast<std::size_t>(a)].participant <
             lookups_[static_cast<std::size_t>(b)].participant;
    };
    if (!std::is_sorted(own.begin(), own.end(), is_before))
      std::stable_sort(own.begin(), own.end(), is_before);
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
