#include "cli/collectives_issued.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cli/collectives_messages.h"
#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {
namespace {

using Indices = std::vector<std::size_t>;  // into IssuedJob::ranks

std::string RanksOf(const IssuedJob& job, const Indices& indices) {
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
                             : has_several && line.IsOpen() ? "not ended"
                                                            : "";
  bool is_first = true;
  for (const auto& [title, ranks] : line.by_title) {
    table.Add({is_first ? fmt::format("{}", line.sequence) : "", title, RanksOf(job, ranks),
               is_first ? LineState(job, line) : "", is_first ? waited : "",
               is_first && has_span ? job.ranks[line.last_rank].name : ""});
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

void PrintGroup(const IssuedJob& job, const IssuedGroup& group, bool all) {
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
  std::size_t left_out = 0;
  const std::size_t longest = LongestWait(lines);
  bool has_ended = false, has_unknown = false, has_enqueued = false, has_issued = false,
       is_outside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const IssuedLine& line = lines[i];
    if (!all && !line.IsOdd() && !line.IsOpen() && line.timed_out.empty() && i != longest &&
        i + kLast < lines.size()) {
      ++left_out;
      has_unknown |= !line.unknown.empty();
      continue;
    }
    has_ended |= !line.ended.empty();
    has_enqueued |= !line.enqueued.empty();
    has_issued |= !line.issued.empty();
    is_outside |= job.dump_ranks == 0 && job.profile_ranks > 0 && !line.unknown.empty();
    AddLine(table, job, group, line);
  }
  table.Print();
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
    if (job.dump_ranks > 0 && job.ranks[i].is_empty) empty.push_back(i);
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
      if (!job.ranks[index].has_file) absent.push_back(index);
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
  if (waits.size() < 2) return;
  std::stable_sort(waits.begin(), waits.end(),
                   [](const RankWait& a, const RankWait& b) { return a.wait_ns > b.wait_ns; });
  PrintWrapped("waited for the last rank, in all collectives whose wait is known", 2, 4);
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
    PrintWrapped(fmt::format("and {} more ranks (--all)", waits.size() - kMost), 4, 6);
}

void PrintCompared(const CollectiveAnswer& answer, bool all) {
  const IssuedJob& job = answer.issued;
  PrintCutDumps(job);
  for (const CollectiveFinding& finding : answer.problems) {
    PrintWrapped(fmt::format("{}: {}", Name(finding.severity), finding.title), 0, 2);
    PrintWrapped(finding.detail, 2, 4);
    if (!finding.advice.empty()) PrintWrapped("try: " + finding.advice, 2, 4);
  }
  for (const IssuedGroup& group : job.groups) PrintGroup(job, group, all);
  PrintMessages(job);
  PrintWaits(job, all);
  for (const GraphProgress& progress : answer.progress) {
    if (progress.reached == progress.scheduled) continue;
    PrintWrapped(
        fmt::format("rank {}: the last call of graph {} ({}) issued {} of {} collectives; next: {}",
                    job.ranks[progress.rank].name, progress.label, progress.function,
                    progress.reached, progress.scheduled, progress.next),
        2, 4);
  }
}

}  // namespace

void PrintIssued(const CollectiveAnswer& answer, bool all) {
  const IssuedJob& job = answer.issued;
  if (!job.empty()) {
    PrintHeading(fmt::format("issued, by {}", job.Sources()));
    PrintCompared(answer, all);
  }
  for (const NotCompared& one : job.not_compared) {
    PrintWrapped(fmt::format("not compared: {} of the {}: {}",
                             Count(static_cast<std::size_t>(one.count), "collective"), one.source,
                             one.reason),
                 0, 2);
  }
}

namespace {

void WriteIndices(JsonWriter& json, const IssuedJob& job, const Indices& indices) {
  json.BeginObject()
      .Key("count")
      .Int(static_cast<std::int64_t>(indices.size()))
      .Key("ranks")
      .String(RanksOf(job, indices))
      .EndObject();
}

void WriteLine(JsonWriter& json, const IssuedJob& job, const IssuedLine& line) {
  json.BeginObject().Key("sequence_number").Int(line.sequence).Key("issued").BeginArray();
  for (const auto& [title, ranks] : line.by_title) {
    json.BeginObject().Key("item").String(title).Key("ranks");
    WriteIndices(json, job, ranks);
    json.EndObject();
  }
  json.EndArray().Key("done");
  WriteIndices(json, job, line.done);
  json.Key("timed_out");
  WriteIndices(json, job, line.timed_out);
  json.Key("ended");
  WriteIndices(json, job, line.ended);
  json.Key("waiting");
  WriteIndices(json, job, line.waiting);
  json.Key("not_started");
  WriteIndices(json, job, line.not_started);
  json.Key("enqueued");
  WriteIndices(json, job, line.enqueued);
  json.Key("end_unknown");
  WriteIndices(json, job, line.issued);
  json.Key("not_reached");
  WriteIndices(json, job, line.missing);
  json.Key("unknown");
  WriteIndices(json, job, line.unknown);
  json.Key("graph")
      .OptionalString(NonEmpty(line.usual->label))
      .Key("file")
      .OptionalString(NonEmpty(line.usual->file));
  json.Key("line").OptionalInt(line.usual->line == 0 ? std::nullopt
                                                     : std::optional(line.usual->line));
  json.Key("wait_us");
  line.HasWait() ? json.Real(static_cast<double>(line.WaitNs()) / 1e3) : json.Null();
  json.Key("is_timed_out").Bool(line.IsTimedOut());
  // One that is missing may have come later.
  json.Key("last_rank")
      .OptionalString(line.missing.empty() && line.unknown.empty()
                          ? NonEmpty(job.ranks[line.last_rank].name)
                          : std::nullopt)
      .EndObject();
}

void WriteProblem(JsonWriter& json, const IssuedJob& job, const CollectiveFinding& one) {
  json.BeginObject()
      .Key("kind")
      .String(Name(one.kind))
      .Key("severity")
      .String(Name(one.severity))
      .Key("title")
      .String(one.title);
  json.Key("detail").String(one.detail).Key("ranks");
  WriteIndices(json, job, one.ranks);
  json.Key("group").String(one.group).Key("sequence_number").Int(one.sequence);
  json.Key("graph")
      .OptionalString(NonEmpty(one.label))
      .Key("function")
      .OptionalString(NonEmpty(one.function));
  json.Key("file")
      .OptionalString(NonEmpty(one.file))
      .Key("line")
      .OptionalInt(one.line == 0 ? std::nullopt : std::optional(one.line));
  json.Key("cause")
      .OptionalString(NonEmpty(one.cause))
      .Key("try")
      .OptionalString(NonEmpty(one.advice));
  json.Key("since_us").OptionalInt(one.since_us).EndObject();
}

void WriteGroup(JsonWriter& json, const IssuedJob& job, const IssuedGroup& group) {
  json.BeginObject().Key("name").String(group.name);
  json.Key("description").OptionalString(NonEmpty(group.description));
  json.Key("ranks");
  WriteIndices(json, job, group.ranks);
  json.Key("unknown");
  WriteIndices(json, job, group.unknown);
  json.Key("collectives").BeginArray();
  for (const IssuedLine& line : IssuedLines(job, group)) WriteLine(json, job, line);
  json.EndArray().EndObject();
}

void WriteProgress(JsonWriter& json, const IssuedJob& job, const GraphProgress& one) {
  json.BeginObject().Key("rank").String(job.ranks[one.rank].name);
  json.Key("graph").String(one.label).Key("function").String(one.function);
  json.Key("scheduled").Int(static_cast<std::int64_t>(one.scheduled));
  json.Key("issued").Int(static_cast<std::int64_t>(one.issued));
  json.Key("reached_in_last_call").Int(static_cast<std::int64_t>(one.reached));
  json.Key("next").OptionalString(NonEmpty(one.next)).EndObject();
}

void WriteCutDump(JsonWriter& json, const CutDump& dump) {
  json.BeginObject().Key("rank").OptionalString(NonEmpty(dump.rank));
  json.Key("path").String(dump.path).Key("byte_offset").OptionalInt(dump.byte_offset);
  json.Key("problem").String(dump.problem).EndObject();
}

}  // namespace

void WriteNotCompared(JsonWriter& json, const CollectiveAnswer& answer) {
  json.BeginArray();
  for (const NotCompared& one : answer.issued.not_compared) {
    json.BeginObject().Key("count").Int(one.count).Key("source").String(one.source);
    json.Key("reason").String(one.reason).EndObject();
  }
  json.EndArray();
}

void WriteIssued(JsonWriter& json, const CollectiveAnswer& answer) {
  const IssuedJob& job = answer.issued;
  if (job.empty()) {
    json.Null();
    return;
  }
  json.BeginObject().Key("sources").String(job.Sources()).Key("groups").BeginArray();
  for (const IssuedGroup& group : job.groups) WriteGroup(json, job, group);
  json.EndArray();
  WriteMessages(json, job);
  json.Key("findings").BeginArray();
  for (const CollectiveFinding& one : answer.problems) WriteProblem(json, job, one);
  json.EndArray().Key("progress").BeginArray();
  for (const GraphProgress& one : answer.progress) WriteProgress(json, job, one);
  json.EndArray().Key("waits").BeginArray();
  for (const RankWait& wait : WaitsByRank(job)) {
    json.BeginObject().Key("rank").String(job.ranks[wait.rank].name);
    json.Key("collectives").Int(wait.collectives);
    json.Key("wait_us").Real(static_cast<double>(wait.wait_ns) / 1e3);
    json.Key("last_in").Int(wait.last_in).EndObject();
  }
  json.EndArray().Key("cut_dumps").BeginArray();
  for (const CutDump& dump : job.cut_dumps) WriteCutDump(json, dump);
  json.EndArray().EndObject();
}

}  // namespace tlparse
