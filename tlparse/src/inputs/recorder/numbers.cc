#include "inputs/recorder/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string_view>
#include <utility>

namespace tlparse {
namespace {

struct CountedEntry {
  std::string_view group, name;
  std::optional<std::int64_t> record, sequence;
  bool has_flag = false;  // it says that it is a send or a receive
  // "send" of "ncclx:send", and of "nccl:send 0->1"
  std::string_view Op() const {
    const std::string_view op = name.substr(name.rfind(':') + 1);
    return op.substr(0, op.find(' '));
  }
  bool IsMessage() const { return Op() == "send" || Op() == "recv" || Op() == "batch_op_issue"; }
};

std::vector<CountedEntry> EntriesOf(const PlainValue& entries) {
  std::vector<CountedEntry> all(entries.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const PlainValue entry = entries.At(i);
    if (entry.type() != PlainValue::Type::kDict || entry.is_cut()) continue;
    all[i] = {.group = entry["process_group"].At(0).Text().value_or(""),
              .name = entry["profiling_name"].Text().value_or(""),
              .record = NumberOf(entry["record_id"]),
              .sequence =
                  NumberOf(entry[entry.Has("collective_seq_id") ? "collective_seq_id" : "seq_id"]),
              .has_flag = entry["is_p2p"].Bool().value_or(false)};
    if (all[i].has_flag) all[i].sequence = NumberOf(entry["p2p_seq_id"]);
  }
  return all;
}

// Whether one counter numbers the calls of several groups, or collectives and messages.
bool AreOneCount(const std::vector<CountedEntry>& all) {
  bool has_several = false;
  std::optional<std::int64_t> last;
  for (const CountedEntry& one : all) {
    if (one.has_flag || !one.record || !one.sequence || (last && *one.record <= *last) ||
        *one.sequence - *one.record != *all.front().sequence - *all.front().record)
      return false;
    last = one.record;
    has_several |= one.group != all.front().group || one.IsMessage();
  }
  return has_several;
}

bool IsWhole(const std::vector<CountedEntry>& all) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].record != static_cast<std::int64_t>(i)) return false;
  return true;
}

// The own rank and the other one, as ranks of a group of two: "[4, 6]".
std::optional<std::pair<int, int>> PairOf(const PlainValue& root, std::string_view group,
                                          std::int64_t rank) {
  const std::string_view text = root["pg_config"][group]["ranks"].Text().value_or("");
  std::vector<std::int64_t> members;
  for (std::size_t at = text.find_first_of("0123456789"); at != text.npos && members.size() < 3;
       at = text.find_first_of("0123456789", at)) {
    std::int64_t one = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), one);
    if (error != std::errc()) return std::nullopt;
    members.push_back(one);
    at = static_cast<std::size_t>(end - text.data());
  }
  if (members.size() != 2 || (members[0] != rank && members[1] != rank)) return std::nullopt;
  return members[0] == rank ? std::pair(0, 1) : std::pair(1, 0);
}

}  // namespace

std::optional<std::int64_t> NumberOf(const PlainValue& value) {
  const std::optional<std::string_view> text = value.Text();
  std::int64_t number = 0;
  if (!text) return value.Int();
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::vector<EntryNumber> NumberEntries(const PlainValue& root, std::optional<std::int64_t> rank) {
  const std::vector<CountedEntry> all = EntriesOf(root["entries"]);
  const bool is_one_count = AreOneCount(all), is_whole = is_one_count && IsWhole(all);
  std::map<std::pair<std::string_view, bool>, std::int64_t> counts;
  std::vector<EntryNumber> numbers;
  for (const CountedEntry& one : all) {
    EntryNumber& number = numbers.emplace_back(
        EntryNumber{.is_p2p = one.has_flag, .sequence = one.sequence, .op = std::string(one.name)});
    if (!is_one_count) continue;
    number.is_p2p = one.IsMessage();
    number.sequence.reset();
    if (is_whole) number.sequence = ++counts[{one.group, number.is_p2p}];
    const auto pair = number.is_p2p && rank && one.name.ends_with(one.Op())
                          ? PairOf(root, one.group, *rank)
                          : std::nullopt;
    if (pair && one.Op() != "batch_op_issue")
      number.op +=
          fmt::format(" {}{}{}", pair->first, one.Op() == "send" ? "->" : "<-", pair->second);
  }
  return numbers;
}

}  // namespace tlparse
