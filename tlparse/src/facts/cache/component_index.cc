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
  ASSIGN_OR_RETURN(Statement runs,
                   database.Prepare("SELECT length, list_id, list_ordinal "
                                    "FROM component_run_row WHERE set_id = ? ORDER BY ordinal"));
  ASSIGN_OR_RETURN(
      Statement texts,
      database.Prepare(
          "SELECT t.text, coalesce(c.hash, h.hash), c.value FROM component_row c "
          "JOIN text_row t ON t.id = c.name_id LEFT JOIN component_hash_row h ON c.hash IS NULL "
          "AND h.component_id = c.id AND h.device_index = ?2 WHERE c.id = ?1"));
  ComponentIndex index(std::move(runs), std::move(texts));
  RETURN_IF_ERROR(index.LoadComponents(database));
  RETURN_IF_ERROR(index.LoadLists(database));
  RETURN_IF_ERROR(index.LoadRuns(database));
  return index;
}

Result<void> ComponentIndex::LoadComponents(Database& database) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT c.id, c.name_id, c.hash, c.value, t.text "
                       "FROM component_row c LEFT JOIN text_row t ON t.id = c.name_id"));
  std::string key;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const auto id = static_cast<std::size_t>(rows.Int(0));
    if (id >= components_.size()) components_.resize(id + 1);
    const bool has_device = rows.IsNull(2);
    const DesignNeutral neutral =
        has_device ? NeutralizeDesign(rows.Text(4), PutDeviceIndex(rows.Text(3), 0))
                   : NeutralizeDesign(rows.Text(4), rows.Text(3));
    key.assign(rows.Text(4));
    key += '\0';
    if (neutral.has_device || neutral.has_rank_path) {
      key += neutral.text;
    } else {
      key += rows.Text(2);
    }
    components_[id] = {rows.Int(1), HashBytes(key), has_device};
  }
}

Result<void> ComponentIndex::LoadLists(Database& database) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT list_id, component_id "
                                    "FROM component_list_row ORDER BY list_id, ordinal"));
  std::int64_t last = -1;
  List* list = nullptr;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    if (list == nullptr || rows.Int(0) != last) {
      last = rows.Int(0);
      list = &lists_[last];
      *list = {list_components_.size(), sums_.size(), 0};
      sums_.push_back({});
    }
    const auto component = static_cast<std::size_t>(rows.Int(1));
    if (component >= components_.size())
      return Fail(ErrorCode::kDatabase, "component_list_row names a component that is not there");
    list_components_.push_back(rows.Int(1));
    sums_.push_back(Add(sums_.back(), components_[component].neutral));
    ++list->size;
  }
}

Result<void> ComponentIndex::LoadRuns(Database& database) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT set_id, length, list_id, list_ordinal FROM component_run_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const auto list = lists_.find(rows.Int(2));
    const auto begin = static_cast<std::size_t>(rows.Int(3)),
               length = static_cast<std::size_t>(rows.Int(1));
    if (list == lists_.end() || begin + length > list->second.size) {
      return Fail(ErrorCode::kDatabase, "component_run_row reaches beyond its list");
    }
    const Hash128* sums = sums_.data() + list->second.sum_begin + begin;
    Hash128& hash = neutral_of_set_[rows.Int(0)];
    hash = Add(hash, Subtract(sums[length], sums[0]));
  }
}

Hash128 ComponentIndex::NeutralHash(std::int64_t set_id) const {
  const auto found = neutral_of_set_.find(set_id);
  return found == neutral_of_set_.end() ? Hash128{} : found->second;
}

Result<std::vector<KeyComponent>> ComponentIndex::Expand(std::int64_t set_id) {
  std::vector<KeyComponent> components;
  runs_.Bind(1, set_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, runs_.Step());
    if (!has_row) return components;
    const auto list = lists_.find(runs_.Int(1));
    if (list == lists_.end()) continue;
    const auto first =
        list_components_.begin() + static_cast<std::ptrdiff_t>(list->second.begin) + runs_.Int(2);
    std::for_each(first, first + runs_.Int(0), [&](std::int64_t id) {
      components.push_back({id, components_[static_cast<std::size_t>(id)].name_id});
    });
  }
}

Result<const ComponentIndex::Text*> ComponentIndex::Fetch(const ComponentOfKey& component) {
  const auto [entry, is_new] = fetched_.try_emplace({component.id, component.device_index});
  if (!is_new) return &entry->second;
  texts_.Bind(1, component.id);
  texts_.Bind(2, component.device_index);
  ASSIGN_OR_RETURN(const bool has_row, texts_.Step());
  if (has_row) {
    entry->second = {std::string(texts_.Text(0)), std::string(texts_.Text(1)),
                     component.device_index < 0
                         ? std::string(texts_.Text(2))
                         : PutDeviceIndex(texts_.Text(2), component.device_index)};
  }
  texts_.Reset();
  return &entry->second;
}

}  // namespace tlparse
