#include "cli/mcp/fit_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printable.h"
#include "cli/terminal.h"

namespace tlparse {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

// The title of a finding is the sentence that answers; without its middle it names nothing.
constexpr std::size_t kTitle = 300, kTitleBelow = 160;
// What lies deeper than a row and its members is cut to half.
constexpr std::size_t kRowDepth = 3;
// Of numbers, such as ranks, so many are shown where no item of a list is.
constexpr std::size_t kNumbers = 4;

bool IsScalar(element value) {
  return value.type() != element_type::ARRAY && value.type() != element_type::OBJECT;
}

// Says nothing: a set of ranks that has none has a count of 0.
bool IsEmpty(element value) {
  switch (value.type()) {
    case element_type::NULL_VALUE:
      return true;
    case element_type::STRING:
      return std::string_view(value).empty();
    case element_type::ARRAY:
      return array(value).size() == 0;
    case element_type::OBJECT:
      for (const auto& [key, member] : object(value)) {
        std::int64_t count = 0;
        const bool is_none = key == "count" && member.get(count) == simdjson::SUCCESS && count == 0;
        if (!is_none && !IsEmpty(member)) return false;
      }
      return true;
    default:
      return false;
  }
}

// An object without lists and objects takes no more room than its members.
bool IsFlat(element value) {
  if (value.type() != element_type::OBJECT) return false;
  const object members(value);
  return std::all_of(members.begin(), members.end(),
                     [](const auto& member) { return IsScalar(member.value); });
}

bool IsOfNumbers(array list) {
  return std::all_of(list.begin(), list.end(), [](element one) { return one.is_number(); });
}

// Marked so, or with a list of nothing else.
bool IsAlike(element item) {
  bool is_alike = false;
  if (item["is_alike"].get(is_alike) == simdjson::SUCCESS) return is_alike;
  if (item.type() != element_type::OBJECT) return false;
  for (const auto& [key, member] : object(item)) {
    array list;
    if (member.get(list) != simdjson::SUCCESS || list.size() == 0 ||
        (*list.begin())["is_alike"].get(is_alike) != simdjson::SUCCESS)
      continue;
    return std::all_of(list.begin(), list.end(), IsAlike);
  }
  return false;
}

}  // namespace

std::vector<element> ItemsInOrder(array list) {
  std::vector<element> items(list.begin(), list.end());
  std::stable_partition(items.begin(), items.end(), [](element one) { return !IsAlike(one); });
  return items;
}

void FitWriter::WriteHead(object document) {
  for (const auto& [key, value] : document)
    if (key != options_.rows && key != options_.row_count) WriteMember(key, value, "", 1);
}

void FitWriter::WriteRow(element row) {
  if (row.type() != element_type::ARRAY) return Write(row, std::string(options_.rows), 1);
  // The cells of a row, none of which is left out.
  json_.BeginArray();
  for (const element cell : array(row)) Write(cell, std::string(options_.rows), 2);
  json_.EndArray();
}

void FitWriter::WriteMember(std::string_view key, element value, const std::string& path,
                            std::size_t depth) {
  const bool is_omitted =
      std::find(options_.omitted.begin(), options_.omitted.end(), key) != options_.omitted.end();
  if (is_omitted || IsEmpty(value)) return;
  const std::string own = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  const bool is_list = value.type() == element_type::ARRAY;
  const bool is_short = IsScalar(value) || (is_list ? IsOfNumbers(array(value)) : IsFlat(value));
  const bool is_deep = depth >= measure_.depth || (is_list && MostItems(array(value)) == 0);
  if (is_deep && !is_short) {
    left_out_.lists[own].second += is_list ? array(value).size() : 1;
    return;
  }
  json_.Key(key);
  Write(value, own, depth);
}

void FitWriter::Write(element value, const std::string& path, std::size_t depth) {
  switch (value.type()) {
    case element_type::OBJECT:
      json_.BeginObject();
      for (const auto& [key, member] : object(value)) WriteMember(key, member, path, depth + 1);
      json_.EndObject();
      return;
    case element_type::ARRAY:
      return WriteList(array(value), path, depth);
    case element_type::STRING:
      return WriteText(std::string_view(value), path, depth);
    default:
      json_.Raw(simdjson::minify(value));
  }
}

void FitWriter::WriteText(std::string_view value, const std::string& path, std::size_t depth) {
  const bool is_title = path.ends_with(".title");
  const bool is_below = depth > kRowDepth;
  const std::size_t least = !is_title ? 0 : is_below ? kTitleBelow : kTitle;
  const std::size_t most = is_below ? std::max<std::size_t>(measure_.text / 2, 40) : measure_.text;
  const std::string text = Printable(value, true);
  const std::string cut = ShortenMiddle(text, std::max(most, least));
  if (cut != text) ++left_out_.texts;
  json_.String(cut);
}

std::size_t FitWriter::MostItems(array list) const {
  if (IsOfNumbers(list)) return std::max(measure_.items, kNumbers);
  const bool has_lists = std::any_of(list.begin(), list.end(),
                                     [](element one) { return !IsScalar(one) && !IsFlat(one); });
  return has_lists ? measure_.nested : measure_.items;
}

void FitWriter::WriteList(array list, const std::string& path, std::size_t depth) {
  const std::vector<element> items = ItemsInOrder(list);
  const std::size_t shown = std::min(items.size(), MostItems(list));
  if (shown < items.size()) {
    auto& [sum_shown, sum] = left_out_.lists[path];
    sum_shown += shown;
    sum += items.size();
  }
  json_.BeginArray();
  for (std::size_t i = 0; i < shown; ++i) Write(items[i], path + "[]", depth + 1);
  json_.EndArray();
}

namespace {

// A step of a name: "key", "key[]", "key[2]".
struct ListStep {
  std::string_view key;
  std::optional<std::size_t> index;
};

ListStep StepOf(std::string_view text) {
  ListStep step;
  step.key = text.substr(0, text.find('['));
  const std::string_view rest = text.substr(step.key.size());
  std::size_t index = 0;
  if (rest.size() > 2 &&
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), index).ec == std::errc())
    step.index = index;
  return step;
}

}  // namespace

std::optional<std::vector<element>> ItemsOfList(element document, std::string_view name) {
  std::vector<element> values = {document};
  while (!name.empty()) {
    const std::string_view text = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), text.size() + 1));
    const ListStep step = StepOf(text);
    std::vector<element> next;
    bool is_known = false;
    for (const element value : values) {
      element member;
      if (value.type() != element_type::OBJECT || value[step.key].get(member) != simdjson::SUCCESS)
        continue;
      is_known = true;
      if (member.type() != element_type::ARRAY) {
        if (!IsEmpty(member)) next.push_back(member);
        continue;
      }
      const std::vector<element> items = ItemsInOrder(array(member));
      if (!step.index)
        next.insert(next.end(), items.begin(), items.end());
      else if (*step.index < items.size())
        next.push_back(items[*step.index]);
    }
    if (!is_known) return std::nullopt;
    values = std::move(next);
  }
  return values;
}

}  // namespace tlparse
