#include "runner/process_ranks.h"

#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace tlparse {

namespace {

std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t value = 0;
  if (text.empty()) return std::nullopt;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

using Numbers = std::vector<std::optional<std::int64_t>>;

Numbers NumbersOf(std::string_view list) {
  Numbers numbers;
  while (true) {
    const std::size_t comma = list.find(',');
    numbers.push_back(NumberOf(list.substr(0, comma)));
    if (comma == list.npos) return numbers;
    list.remove_prefix(comma + 1);
  }
}

struct Sibling {
  std::size_t place = 0;
  Numbers numbers;
};

// Whether the argument is the rank of all that are known to have one, and of each another number.
bool IsRank(std::size_t argument, const std::vector<Sibling>& siblings,
            const std::vector<WatchedProcess>& processes) {
  std::set<std::int64_t> ranks;
  bool is_told = false;
  for (const Sibling& one : siblings) {
    const std::optional<std::int64_t>& rank = processes[one.place].rank;
    if (argument >= one.numbers.size() || !one.numbers[argument]) return false;
    if (rank && rank != one.numbers[argument]) return false;
    if (!ranks.insert(*one.numbers[argument]).second) return false;
    is_told = is_told || rank;
  }
  return is_told;
}

// A process that ends before it joins its process group: others that the same parent started with the
// same function show which of its arguments is the rank.
void TakeArguments(std::vector<WatchedProcess>& processes, const std::vector<ToldRank>& told,
                   const std::vector<std::size_t>& parents) {
  std::map<std::pair<std::size_t, std::string_view>, std::vector<Sibling>> families;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (!told[i].numbers.empty())
      families[{parents[i], told[i].function}].push_back({i, NumbersOf(told[i].numbers)});
  }
  for (const auto& [family, siblings] : families) {
    for (std::size_t argument = 0; argument < siblings.front().numbers.size(); ++argument) {
      if (!IsRank(argument, siblings, processes)) continue;
      for (const Sibling& one : siblings) processes[one.place].rank = one.numbers[argument];
      break;
    }
  }
}

}  // namespace

void SetRanks(std::vector<WatchedProcess>& processes, const std::vector<ToldRank>& told) {
  std::vector<std::size_t> parents;  // in `processes`; its own place: none
  std::map<pid_t, std::size_t> places;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto parent = places.find(processes[i].parent_pid);
    parents.push_back(parent == places.end() ? i : parent->second);
    places[processes[i].pid] = i;
    const bool is_child = parents[i] < i && told[i].text == told[parents[i]].text;
    processes[i].rank.reset();
    if (told[i].text && (!is_child || told[i].is_member))
      processes[i].rank = NumberOf(*told[i].text);
  }
  // A shell that started a rank has its RANK.
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (!told[i].is_member) continue;
    for (std::size_t at = i; parents[at] != at;) {
      at = parents[at];
      if (!told[at].is_member && processes[at].rank == processes[i].rank)
        processes[at].rank.reset();
    }
  }
  TakeArguments(processes, told, parents);
}

}  // namespace tlparse
