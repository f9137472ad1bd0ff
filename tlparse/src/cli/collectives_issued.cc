#include "cli/collectives_issued.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/plural.h"
#include "cli/collectives_messages.h"
#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/collectives/issued_lines.h"
#include "facts/compiles/user_frames.h"

namespace tlparse {

std::string RanksOf(const IssuedJob& job, const std::vector<std::size_t>& indices) {
  std::vector<std::int64_t> ranks;
  std::string names;
  for (const std::size_t index : indices) {
    const IssuingRank& rank = job.ranks[index];
    if (rank.rank)
      ranks.push_back(*rank.rank);
    else
      names += (names.empty() ? "" : ",") + rank.name;
  }
  std::sort(ranks.begin(), ranks.end());
  std::string text = FormatRankRanges(ranks);
  if (!names.empty()) text += (text.empty() ? "" : ",") + names;
  return text;
}

bool IsAlike(const IssuedLine& line) {
  return !line.IsOdd() && !line.IsOpen() && line.timed_out.empty();
}

namespace {

using Indices = std::vector<std::size_t>;  // into IssuedJob::ranks

// Where the ranks of a line are; "done" if all have ended it.
std::string LineState(const IssuedJob& job, const IssuedLine& line) {
  std::string state;
  const auto add = [&](std::string_view what, const Indices& ranks) {
    if (!ranks.empty())
      state += fmt::format("{}{} {}", state.empty() ? "" : ", ", what, RanksOf(job, ranks));
  };
  if (!line.IsOpen() && line.missing.empty() && line.timed_out.empty() && line.ended.empty() &&
      line.issued.empty() && line.unknown.empty())
    return "done";
  add("done", line.done);
  add("TIMED OUT", line.timed_out);
  add("ended", line.ended);
  add("in it", line.waiting);
  add("enqueued, not started", line.not_started);
  add("enqueued", line.enqueued);
  add("issued", line.issued);
  add("NOT REACHED", line.missing);
  add("unknown", line.unknown);
  return state;
}

// One row for each title that ranks gave to the collective.
void AddLine(Table& table, const IssuedJob& job, const IssuedGroup& group, const IssuedLine& line) {
  const bool has_several = group.ranks.size() > 1;
  const bool has_span = has_several && line.HasWait();
  const std::string waited = has_span ? HumanDuration(static_cast<double>(line.WaitNs()) / 1e9)
                             : has_several && line.IsOpen()         ? "not ended"
                             : has_several && line.has_other_clocks ? "clocks differ"
                                                                    : "";
  bool is_first = true;
  for (const auto& [title, ranks] : line.by_title) {
    table.Add({is_first ? fmt::format("{}", line.sequence) : "", title, RanksOf(job, ranks),
               is_first ? LineState(job, line) : "", is_first ? waited : "",
               is_first && has_several && line.HasLast() ? job.ranks[line.last_rank].name : ""});
    is_first = false;
  }
}

// The number of the line that ranks waited longest in; if no wait is known, that of lines.
std::size_t LongestWait(const std::vector<IssuedLine>& lines) {
  std::size_t longest = lines.size();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].HasWait() &&
        (longest == lines.size() || lines[i].WaitNs() > lines[longest].WaitNs()))
      longest = i;
  }
  return longest;
}

// Of each thing that ranks issued under the number: by the first of these ranks whose dump has the stack.
void AddStacks(const CollectiveAnswer& answer, const IssuedGroup& group, const IssuedLine& line,
               ShownStacks& stacks) {
  if (answer.stacks.empty()) return;
  for (const auto& [title, ranks] : line.by_title) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const std::vector<const IssuedCollective*> calls = group.At(i, line.sequence);
      if (calls.empty() || calls.front()->Title() != title) continue;
      const auto found = answer.stacks.find(calls.front()->stack_id);
      if (found == answer.stacks.end() || found->second.empty()) continue;
      stacks.Add(fmt::format("#{} {} (rank {})", line.sequence, calls.front()->PrintedOp(),
                             answer.issued.ranks[group.ranks[i]].name),
                 found->second);
      break;
    }
  }
}

void PrintGroup(const CollectiveAnswer& answer, const IssuedGroup& group, bool all) {
  const IssuedJob& job = answer.issued;
  PrintWrapped(fmt::format("{}: ranks {}{}", group.Title(), RanksOf(job, group.ranks),
                           group.unknown.empty() ? "" : "; unknown " + RanksOf(job, group.unknown)),
               2, 4);
  const std::vector<IssuedLine> lines = IssuedLines(job, group);
  constexpr std::size_t kLast = 3;
  Table table({{"#", Table::Align::kRight},
               {"collective"},
               {"ranks"},
               {"state"},
               {"waited", Table::Align::kRight},
               {"last"}});
  ShownStacks stacks;
  std::size_t left_out = 0;
  const std::size_t longest = LongestWait(lines);
  bool has_ended = false, has_unknown = false, has_enqueued = false, has_issued = false,
       is_outside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const IssuedLine& line = lines[i];
    if (!all && IsAlike(line) && i != longest && i + kLast < lines.size()) {
      ++left_out;
      has_unknown |= !line.unknown.empty();
      continue;
    }
    has_ended |= !line.ended.empty();
    has_enqueued |= !line.enqueued.empty();
    has_issued |= !line.issued.empty();
    is_outside |= job.dump_ranks == 0 && job.profile_ranks > 0 && !line.unknown.empty();
    AddLine(table, job, group, line);
    AddStacks(answer, group, line, stacks);
  }
  table.Print();
  for (const std::string& stack : stacks.lines()) PrintWrapped(stack, 4, 6);
  if (has_ended) {
    PrintWrapped(
        "ended: the dump does not show whether a call in or after one that timed out, that some "
        "rank did not reach, that ranks issued differently, or the last one of a group with a "
        "member that has no dump, completed",
        4, 6);
  }
  if (has_enqueued) {
    PrintWrapped(
        "enqueued: not ended; the dump does not record when a device starts a collective (that "
        "needs TORCH_NCCL_ENABLE_TIMING)",
        4, 6);
  }
  if (has_issued)
    PrintWrapped("issued: the rank's file does not show whether it ended there", 4, 6);
  if (is_outside)
    PrintWrapped("unknown: not in the rank's profile, which covers a part of the job only", 4, 6);
  if (left_out > 0) {
    PrintWrapped(fmt::format("and {} more, alike on all ranks{} (--all)", left_out,
                             has_unknown ? " whose files hold them" : ""),
                 4, 6);
  }
}

void PrintCutDumps(const IssuedJob& job) {
  for (const CutDump& dump : job.cut_dumps) {
    PrintWrapped(
        fmt::format("{}: its dump is not whole: {}{}: {}; what it does not hold is unknown",
                    dump.rank.empty() ? "no rank" : "rank " + dump.rank, dump.path,
                    dump.byte_offset ? fmt::format(", byte {}", *dump.byte_offset) : "",
                    dump.problem),
        2, 4);
  }
  Indices empty;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const IssuingRank& rank = job.ranks[i];
    if (job.dump_ranks == 0 || !rank.is_empty || !job.IsAsked(i)) continue;
    if (rank.counted_calls == 0) {
      empty.push_back(i);
      continue;
    }
    PrintWrapped(fmt::format("rank {}: its dump counts {} and has no entry of them", rank.name,
                             Count(static_cast<std::size_t>(rank.counted_calls), "call")),
                 2, 4);
  }
  if (!empty.empty())
    PrintWrapped(fmt::format("{} {}: no entry is in {}; what {} issued is unknown",
                             empty.size() == 1 ? "rank" : "ranks", RanksOf(job, empty),
                             empty.size() == 1 ? "its dump" : "their dumps",
                             empty.size() == 1 ? "it" : "they"),
                 2, 4);
  Indices absent;
  for (const IssuedGroup& group : job.groups) {
    for (const std::size_t index : group.unknown) {
      if (!job.ranks[index].has_file && job.IsAsked(index)) absent.push_back(index);
    }
  }
  std::sort(absent.begin(), absent.end());
  absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
  if (absent.empty()) return;
  PrintWrapped(
      fmt::format("{} {}: no {} is among the input; what {} issued is unknown",
                  absent.size() == 1 ? "rank" : "ranks", RanksOf(job, absent),
                  job.dump_ranks > 0 ? "dump" : "profile", absent.size() == 1 ? "it" : "they"),
      2, 4);
}

// Who waited for the others, and for whom.
void PrintWaits(const IssuedJob& job, bool all) {
  constexpr std::size_t kMost = 16;
  std::vector<RankWait> waits = WaitsByRank(job);
  if (waits.size() < (job.is_of_some ? 1U : 2U)) return;
  std::stable_sort(waits.begin(), waits.end(),
                   [](const RankWait& a, const RankWait& b) { return a.wait_ns > b.wait_ns; });
  PrintWrapped(
      "waited for the last rank (asynchronous calls: or worked on), in all collectives whose wait "
      "is known; what several share counts once",
      2, 4);
  Table table({{"rank", Table::Align::kRight},
               {"collectives", Table::Align::kRight},
               {"waited in all", Table::Align::kRight},
               {"was last in", Table::Align::kRight}});
  for (std::size_t i = 0; i < waits.size() && (all || i < kMost); ++i)
    table.Add({job.ranks[waits[i].rank].name, fmt::format("{}", waits[i].collectives),
               HumanDuration(static_cast<double>(waits[i].wait_ns) / 1e9),
               fmt::format("{}", waits[i].last_in)});
  table.Print();
  if (!all && waits.size() > kMost)
    PrintWrapped(fmt::format("and {} (--all)", Count(waits.size() - kMost, "more rank")), 4, 6);
}

void PrintCompared(const CollectiveAnswer& answer, bool all) {
  const IssuedJob& job = answer.issued;
  PrintCutDumps(job);
  for (const CollectiveFinding& finding : answer.problems) {
    PrintWrapped(fmt::format("{}: {}", Name(finding.severity), finding.title), 0, 2);
    PrintWrapped(finding.detail, 2, 4);
    if (!finding.advice.empty()) PrintWrapped("try: " + finding.advice, 2, 4);
  }
  for (const IssuedGroup& group : job.groups) PrintGroup(answer, group, all);
  PrintMessages(job);
  PrintWaits(job, all);
  for (const GraphProgress& progress : answer.progress) {
    if (progress.reached == progress.scheduled) continue;
    PrintWrapped(
        fmt::format("rank {}: the last call of graph {} ({}) issued {} of {}; next: {}",
                    job.ranks[progress.rank].name, progress.label, progress.function,
                    progress.reached, Count(progress.scheduled, "collective"), progress.next),
        2, 4);
  }
}

}  // namespace

void PrintIssued(const CollectiveAnswer& answer, bool all) {
  const IssuedJob& job = answer.issued;
  if (!job.empty()) PrintHeading(fmt::format("issued, by {}", job.Sources()));
  PrintCompared(answer, all);
  PrintProfiledMessages(job);
  for (const NotCompared& one : job.not_compared) {
    PrintWrapped(
        fmt::format("not compared: {} of the {}: {}",
                    Count(static_cast<std::size_t>(one.count), "call"), one.source, one.reason),
        0, 2);
  }
}

}  // namespace tlparse
