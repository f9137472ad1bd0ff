#include "facts/job/concurrent_logs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "queries/facts/job/concurrent_logs.h"

namespace tlparse {
namespace {

using Iterator = std::vector<RunParticipant>::iterator;

bool IsPlainFileName(std::string_view name) {
  constexpr std::size_t kMost = 64;
  return !name.empty() && name.size() <= kMost && std::all_of(name.begin(), name.end(), [](char c) {
    return IsWordCharacter(c) || c == '.' || c == '-';
  });
}

bool IsLogOfRank(const RunParticipant& one) {
  return one.rank && !one.processes.empty() && one.copy_of.empty();
}

std::int64_t RecordCount(const RunParticipant& one) {
  return one.last_record_id - one.first_record_id + 1;
}

bool HaveSameBytes(const RunParticipant& a, const RunParticipant& b) {
  return !a.content_hash.empty() && a.content_hash == b.content_hash;
}

// Whether the records of the shorter log are the first ones of the longer.
Result<bool> IsBeginning(Database& database, const RunParticipant& shorter,
                         const RunParticipant& longer) {
  const ParticipantProcess &one = shorter.processes.front(), &other = longer.processes.front();
  if (one.pid != other.pid || one.first_record_us != other.first_record_us ||
      RecordCount(shorter) < 2)
    return false;
  ASSIGN_OR_RETURN(const FirstRow<SameRecords> same,
                   First(KeptQuery<SameRecords>(
                       database, {.first = shorter.first_record_id,
                                  .last = shorter.last_record_id,
                                  .distance = longer.first_record_id - shorter.first_record_id})));
  return same && same->are_equal;
}

// What orders the logs of a rank by the start of their processes, where they tell.
struct Start {
  std::int64_t us = 0, pid = 0;
};

Start StartOf(const RunParticipant& one) {
  const ParticipantProcess& process = one.processes.front();
  return {process.first_record_us.value_or(0), process.pid};
}

// Whether all of the second logs of the ranks began after all of their first ones.
bool AreApart(const std::vector<Start>& first, const std::vector<Start>& second,
              std::int64_t Start::*key) {
  const auto less = [&](const Start& a, const Start& b) { return a.*key < b.*key; };
  return *std::max_element(first.begin(), first.end(), less).*key <
         *std::min_element(second.begin(), second.end(), less).*key;
}

// Where at least two ranks, and more than half of them, have two logs of the same script: the second
// log of each. They are ordered by process id, else by time; `is_clear`: one of the two separates all
// first logs from all second ones.
std::vector<RunParticipant*> SecondLogs(Iterator begin, Iterator end, bool& is_clear) {
  std::map<std::int64_t, std::vector<RunParticipant*>> by_rank;
  for (Iterator one = begin; one != end; ++one) {
    if (IsLogOfRank(*one)) by_rank[*one->rank].push_back(&*one);
  }
  std::vector<std::pair<RunParticipant*, RunParticipant*>> pairs;
  for (const auto& [rank, logs] : by_rank) {
    if (logs.size() == 2 && logs[0]->script == logs[1]->script && !logs[0]->script.empty())
      pairs.emplace_back(logs[0], logs[1]);
  }
  if (pairs.size() < 2 || 2 * pairs.size() <= by_rank.size()) return {};
  for (std::int64_t Start::*const key : {&Start::pid, &Start::us}) {
    std::vector<Start> first, second;
    for (auto& [a, b] : pairs) {
      if (StartOf(*b).*key < StartOf(*a).*key) std::swap(a, b);
      first.push_back(StartOf(*a));
      second.push_back(StartOf(*b));
    }
    is_clear = AreApart(first, second, key);
    if (is_clear) break;
  }
  std::vector<RunParticipant*> seconds;
  for (const auto& [a, b] : pairs) seconds.push_back(b);
  return seconds;
}

}  // namespace

Result<std::string> ScriptOf(Database& database, std::int64_t process_id) {
  FOR_EACH_ROW(const FirstCompileFrame& row,
               KeptQuery<FirstCompileFrame>(database, {.process_id = process_id})) {
    if (!IsUserFile(row.file)) continue;
    const std::string_view name = row.file.substr(row.file.find_last_of("/\\") + 1);
    if (IsPlainFileName(name)) return std::string(name);
  }
  return std::string();
}

Result<void> MarkCopies(Database& database, Iterator begin, Iterator end) {
  // By what two copies have in common: the rank and the process id.
  std::map<std::pair<std::optional<std::int64_t>, std::int64_t>, std::vector<RunParticipant*>> logs;
  for (Iterator one = begin; one != end; ++one) {
    if (!one->processes.empty() && one->whole_log)
      logs[{one->rank, one->processes.front().pid}].push_back(&*one);
  }
  for (auto& [key, alike] : logs) {
    // The longest is no copy.
    std::stable_sort(alike.begin(), alike.end(),
                     [](const RunParticipant* a, const RunParticipant* b) {
                       return RecordCount(*a) > RecordCount(*b);
                     });
    for (std::size_t i = 1; i < alike.size(); ++i) {
      for (std::size_t j = 0; j < i && alike[i]->copy_of.empty(); ++j) {
        if (!alike[j]->copy_of.empty()) continue;
        bool is_copy = HaveSameBytes(*alike[i], *alike[j]);
        alike[i]->is_whole_copy = is_copy;
        if (!is_copy) {
          ASSIGN_OR_RETURN(is_copy, IsBeginning(database, *alike[i], *alike[j]));
        }
        if (is_copy) alike[i]->copy_of = alike[j]->log_path;
      }
    }
  }
  return {};
}

Result<void> SeparateJobs(Database& database, Iterator begin, Iterator end) {
  const auto same_rank = [](const RunParticipant& a, const RunParticipant& b) {
    return a.rank && a.rank == b.rank;
  };
  const auto is_before = [](const RunParticipant& a, const RunParticipant& b) {
    return std::tuple(!a.rank, a.rank, !a.copy_of.empty()) <
           std::tuple(!b.rank, b.rank, !b.copy_of.empty());
  };
  if (!std::is_sorted(begin, end, is_before)) std::stable_sort(begin, end, is_before);
  const bool has_several = std::adjacent_find(begin, end, [&](const auto& a, const auto& b) {
                             return same_rank(a, b) && b.copy_of.empty();
                           }) != end;
  if (!has_several) return {};
  std::map<std::string, std::size_t> counts;
  std::string main;
  for (Iterator one = begin; one != end; ++one) {
    if (!IsLogOfRank(*one)) continue;
    ASSIGN_OR_RETURN(one->script, ScriptOf(database, one->processes.front().id));
    if (one->script.empty()) continue;
    ++counts[one->script];
    if (main.empty()) main = one->script;
  }
  for (const auto& [script, count] : counts) {
    if (count > counts[main]) main = script;
  }
  const auto is_other = [&](const RunParticipant& one) {
    return one.is_of_second_job || (!one.script.empty() && one.script != main);
  };
  bool is_clear = false;
  for (RunParticipant* const one : SecondLogs(begin, end, is_clear)) {
    one->is_of_second_job = true;
    one->is_job_clear = is_clear;
  }
  std::stable_sort(begin, end, [&](const RunParticipant& a, const RunParticipant& b) {
    return std::tuple(!a.rank, a.rank, !a.copy_of.empty(), is_other(a)) <
           std::tuple(!b.rank, b.rank, !b.copy_of.empty(), is_other(b));
  });
  for (Iterator one = begin; one != end; ++one) {
    one->is_of_other_job = one != begin && is_other(*one) && same_rank(*(one - 1), *one);
  }
  return {};
}

}  // namespace tlparse
