#include "facts/cache/component_index.h"

#include <algorithm>
#include <utility>

#include "artifacts/common/text/device_text.h"
#include "base/ascii.h"

namespace tlparse {
namespace {

// Where the next number of a rank begins, at `from` or behind it: that of "rank_3", "rank-3" or
// "rank3". npos if there is none. Only for texts with a path.
std::size_t FindRankInPath(std::string_view text, std::size_t from) {
  constexpr std::string_view kRank = "rank";
  for (std::size_t at = text.find(kRank, from); at != std::string_view::npos;
       at = text.find(kRank, at + 1)) {
    std::size_t number = at + kRank.size();
    if (number < text.size() && (text[number] == '_' || text[number] == '-')) ++number;
    if (number < text.size() && IsDigit(text[number])) return number;
  }
  return std::string_view::npos;
}

Hash128 Add(Hash128 a, const Hash128& b) {
  a.low += b.low;
  a.high += b.high;
  return a;
}

Hash128 Subtract(Hash128 a, const Hash128& b) {
  a.low -= b.low;
  a.high -= b.high;
  return a;
}

}  // namespace

DesignNeutral NeutralizeDesign(std::string_view name, std::string_view value) {
  DesignNeutral result;
  if (name == "default_cuda_device_index") {
    result.has_device = true;
    return result;
  }
  const bool has_path = value.find('/') != std::string_view::npos;
  std::vector<std::string_view> devices;  // in order of appearance
  std::size_t copied = 0;
  std::size_t device = FindDeviceIndex(value, 0);
  std::size_t rank = has_path ? FindRankInPath(value, 0) : std::string_view::npos;
  while (true) {
    const std::size_t begin = std::min(device, rank);
    if (begin == std::string_view::npos) break;
    std::size_t end = begin;
    while (end < value.size() && IsDigit(value[end])) ++end;
    const std::string_view number = value.substr(begin, end - begin);
    result.text += value.substr(copied, begin - copied);
    result.text += '#';
    copied = end;
    if (begin == device) {
      result.has_device = true;
      std::size_t ordinal = 0;
      while (ordinal < devices.size() && devices[ordinal] != number) ++ordinal;
      if (ordinal == devices.size()) devices.push_back(number);
      result.text += std::to_string(ordinal);
      device = FindDeviceIndex(value, end);
    } else {
      result.has_rank_path = true;
      rank = FindRankInPath(value, end);
    }
  }
  result.text += value.substr(copied);
  return result;
}

Result<ComponentIndex> ComponentIndex::Load(Database& database) {
  ASSIGN_OR_RETURN(PreparedQuery<ComponentRunOfSet> runs,
                   PreparedQuery<ComponentRunOfSet>::Make(database));
  ASSIGN_OR_RETURN(PreparedQuery<ComponentText> texts,
                   PreparedQuery<ComponentText>::Make(database));
  ComponentIndex index(std::move(runs), std::move(texts));
  RETURN_IF_ERROR(index.LoadComponents(database));
  RETURN_IF_ERROR(index.LoadLists(database));
  RETURN_IF_ERROR(index.LoadRuns(database));
  return index;
}

Result<void> ComponentIndex::LoadComponents(Database& database) {
  std::string key;
  FOR_EACH_ROW(const ComponentOfIndex& row, Query<ComponentOfIndex>(database)) {
    const auto id = static_cast<std::size_t>(row.id);
    if (id >= components_.size()) components_.resize(id + 1);
    const bool has_device = !row.hash;
    const DesignNeutral neutral = has_device
                                      ? NeutralizeDesign(row.name, PutDeviceIndex(row.value, 0))
                                      : NeutralizeDesign(row.name, row.value);
    key.assign(row.name);
    key += '\0';
    if (neutral.has_device || neutral.has_rank_path) {
      key += neutral.text;
    } else {
      key += row.hash.value_or(std::string_view());
    }
    components_[id] = {row.name_id, HashBytes(key), has_device};
  }
  return {};
}

Result<void> ComponentIndex::LoadLists(Database& database) {
  std::int64_t last = -1;
  List* list = nullptr;
  FOR_EACH_ROW(const ComponentOfList& row, Query<ComponentOfList>(database)) {
    if (list == nullptr || row.list_id != last) {
      last = row.list_id;
      list = &lists_[last];
      *list = {list_components_.size(), sums_.size(), 0};
      sums_.push_back({});
    }
    const auto component = static_cast<std::size_t>(row.component_id);
    if (component >= components_.size())
      return Fail(ErrorCode::kDatabase, "component_list_row names a component that is not there");
    list_components_.push_back(row.component_id);
    sums_.push_back(Add(sums_.back(), components_[component].neutral));
    ++list->size;
  }
  return {};
}

Result<void> ComponentIndex::LoadRuns(Database& database) {
  FOR_EACH_ROW(const ComponentRun& row, Query<ComponentRun>(database)) {
    const auto list = lists_.find(row.list_id);
    const auto begin = static_cast<std::size_t>(row.list_ordinal),
               length = static_cast<std::size_t>(row.length);
    if (list == lists_.end() || begin + length > list->second.size) {
      return Fail(ErrorCode::kDatabase, "component_run_row reaches beyond its list");
    }
    const Hash128* sums = sums_.data() + list->second.sum_begin + begin;
    Hash128& hash = neutral_of_set_[row.set_id];
    hash = Add(hash, Subtract(sums[length], sums[0]));
  }
  return {};
}

Hash128 ComponentIndex::NeutralHash(std::int64_t set_id) const {
  const auto found = neutral_of_set_.find(set_id);
  return found == neutral_of_set_.end() ? Hash128{} : found->second;
}

Result<std::vector<KeyComponent>> ComponentIndex::Expand(std::int64_t set_id) {
  std::vector<KeyComponent> components;
  FOR_EACH_ROW(const ComponentRunOfSet& run, runs_.Run({.set_id = set_id})) {
    const auto list = lists_.find(run.list_id);
    if (list == lists_.end()) continue;
    const auto first = list_components_.begin() + static_cast<std::ptrdiff_t>(list->second.begin) +
                       run.list_ordinal;
    std::for_each(first, first + run.length, [&](std::int64_t id) {
      components.push_back({id, components_[static_cast<std::size_t>(id)].name_id});
    });
  }
  return components;
}

Result<const ComponentIndex::Text*> ComponentIndex::Fetch(const ComponentOfKey& component) {
  const auto [entry, is_new] = fetched_.try_emplace({component.id, component.device_index});
  if (!is_new) return &entry->second;
  ASSIGN_OR_RETURN(const FirstRow<ComponentText> row,
                   First(texts_.Run({.id = component.id, .device_index = component.device_index})));
  if (row) {
    entry->second = {std::string(row->name), std::string(row->hash),
                     component.device_index < 0
                         ? std::string(row->value)
                         : PutDeviceIndex(row->value, component.device_index)};
  }
  return &entry->second;
}

}  // namespace tlparse
