#include "report/viewer/collectives.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "facts/collectives/issued_lines.h"
#include "facts/job/participants.h"
#include "report/viewer/chunk.h"

namespace tlparse {
namespace {

// About 100 bytes each.
constexpr std::size_t kMostCells = 60'000;
constexpr std::size_t kMostFindings = 500;

enum class CellState : std::uint8_t {
  kDone,
  kWaiting,
  kMissing,
  kUnknown,
  kTimedOut,
  kEnded,
  kNotStarted,
  kEnqueued,
  kIssued
};

struct ShownLine {
  std::size_t group;
  IssuedLine line;
  bool is_odd;  // or some rank is in it
};

std::optional<std::int64_t> NonZero(std::int64_t value) {
  return value == 0 ? std::nullopt : std::optional(value);
}

struct LeftOut {
  std::int64_t lines = 0;
  std::int64_t odd = 0;  // of them
};

// Where the cells of all numbers would be too many: what is odd, the first of it first, then the
// latest of each group.
void LeaveOut(const IssuedJob& job, std::vector<ShownLine>& lines, std::vector<LeftOut>& left) {
  std::vector<std::size_t> order(lines.size());
  std::vector<std::size_t> from_end(lines.size());
  std::vector<std::size_t> seen(job.groups.size());
  for (std::size_t i = lines.size(); i-- > 0;) {
    order[i] = i;
    from_end[i] = seen[lines[i].group]++;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (lines[a].is_odd != lines[b].is_odd) return lines[a].is_odd;
    return lines[a].is_odd ? a < b : from_end[a] < from_end[b];
  });
  std::vector<bool> is_kept(lines.size());
  std::size_t cells = 0;
  for (const std::size_t i : order) {
    cells += job.groups[lines[i].group].ranks.size() + job.groups[lines[i].group].unknown.size();
    if (cells > kMostCells) break;
    is_kept[i] = true;
  }
  std::vector<ShownLine> kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_kept[i]) {
      kept.push_back(std::move(lines[i]));
    } else {
      ++left[lines[i].group].lines;
      left[lines[i].group].odd += lines[i].is_odd ? 1 : 0;
    }
  }
  lines = std::move(kept);
}

void AddRanks(const IssuedJob& job, ChunkWriter& writer) {
  writer.BeginTable("rank", {"rank", "process_id", "is_whole"}, {"name", "path"});
  for (const IssuingRank& rank : job.ranks) {
    writer.AddNumber(rank.rank);
    writer.AddNumber(rank.process_id);
    writer.AddNumber(rank.is_whole ? 1 : 0);
    writer.AddText(rank.name);
    writer.AddText(rank.path);
  }
}

void AddGroups(const IssuedJob& job, const std::vector<LeftOut>& left, ChunkWriter& writer) {
  writer.BeginTable("group", {"is_recorded", "left_out", "odd_left_out"}, {"name", "title"});
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    const auto& issued = job.groups[i].issued;
    writer.AddNumber(std::any_of(issued.begin(), issued.end(), [](const auto& of_rank) {
      return !of_rank.empty() && of_rank.front().IsRecorded();
    }));
    writer.AddNumber(left[i].lines);
    writer.AddNumber(left[i].odd);
    writer.AddText(job.groups[i].name);
    writer.AddText(job.groups[i].Title());
  }
  writer.BeginTable("member", {"group", "rank"}, {});
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    std::vector<std::size_t> ranks = job.groups[i].ranks;
    ranks.insert(ranks.end(), job.groups[i].unknown.begin(), job.groups[i].unknown.end());
    for (const std::size_t rank : ranks) {
      writer.AddNumber(static_cast<std::int64_t>(i));
      writer.AddNumber(static_cast<std::int64_t>(rank));
    }
  }
}

void AddLines(const IssuedJob& job, const std::vector<ShownLine>& lines, ChunkWriter& writer) {
  writer.BeginTable("line", {"group", "sequence", "is_odd", "wait_us", "is_timed_out", "last_rank"},
                    {"usual"});
  for (const ShownLine& shown : lines) {
    const IssuedLine& line = shown.line;
    const bool has_span = line.HasWait() && job.groups[shown.group].ranks.size() > 1;
    writer.AddNumber(static_cast<std::int64_t>(shown.group));
    writer.AddNumber(line.sequence);
    writer.AddNumber(line.IsOdd() ? 1 : 0);
    if (has_span) {
      writer.AddReal(static_cast<double>(line.WaitNs()) / 1e3);
      writer.AddNumber(line.IsTimedOut() ? 1 : 0);
    } else {
      writer.AddNumber(std::nullopt);
      writer.AddNumber(std::nullopt);
    }
    writer.AddNumber(has_span && line.HasLast() ? std::optional<std::int64_t>(line.last_rank)
                                                : std::nullopt);
    writer.AddText(line.usual->Title());
  }
}

class Cells {
 public:
  Cells(const IssuedJob& job, std::int64_t origin_us, ChunkWriter& writer)
      : job_(job), origin_us_(origin_us), writer_(writer) {
    writer.BeginTable("cell",
                      {"line", "rank", "state", "is_odd", "start_us", "end_us", "graph_id",
                       "user_line", "code_line", "others"},
                      {"title", "file", "thread", "recorded_state"});
  }

  void AddLine(std::size_t index, const ShownLine& shown) {
    const IssuedGroup& group = job_.groups[shown.group];
    const IssuedLine& line = shown.line;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const std::vector<const IssuedCollective*> all = group.At(i, line.sequence);
      const auto holds = [&](const std::vector<std::size_t>& ranks) {
        return std::binary_search(ranks.begin(), ranks.end(), group.ranks[i]);
      };
      const CellState state = holds(line.done)          ? CellState::kDone
                              : holds(line.waiting)     ? CellState::kWaiting
                              : holds(line.missing)     ? CellState::kMissing
                              : holds(line.timed_out)   ? CellState::kTimedOut
                              : holds(line.ended)       ? CellState::kEnded
                              : holds(line.not_started) ? CellState::kNotStarted
                              : holds(line.enqueued)    ? CellState::kEnqueued
                              : holds(line.issued)      ? CellState::kIssued
                                                        : CellState::kUnknown;
      writer_.AddNumber(static_cast<std::int64_t>(index));
      writer_.AddNumber(static_cast<std::int64_t>(group.ranks[i]));
      writer_.AddNumber(static_cast<std::int64_t>(state));
      AddOne(all, *line.usual);
    }
    for (const std::size_t rank : group.unknown) {
      writer_.AddNumber(static_cast<std::int64_t>(index));
      writer_.AddNumber(static_cast<std::int64_t>(rank));
      writer_.AddNumber(static_cast<std::int64_t>(CellState::kUnknown));
      AddOne({}, *line.usual);
    }
  }

 private:
  void AddOne(const std::vector<const IssuedCollective*>& all, const IssuedCollective& usual) {
    static const IssuedCollective none;
    const IssuedCollective& one = all.empty() ? none : *all.front();
    const std::string title = all.empty() ? std::string() : one.Title();
    writer_.AddNumber(!all.empty() && !one.MayLookLike(usual) ? 1 : 0);
    AddTime(one.start_ns);
    AddTime(one.end_ns);
    writer_.AddNumber(NonZero(one.graph_id));
    writer_.AddNumber(NonZero(one.line));
    writer_.AddNumber(NonZero(one.code_line));
    writer_.AddNumber(all.empty() ? 0 : static_cast<std::int64_t>(all.size()) - 1);
    writer_.AddText(OptionalText(title));
    writer_.AddText(OptionalText(one.file));
    writer_.AddText(OptionalText(one.thread));
    writer_.AddText(OptionalText(one.state));
  }

  void AddTime(std::int64_t ns) {
    if (ns == 0) return writer_.AddNumber(std::nullopt);
    writer_.AddReal(OffsetUs(ns, origin_us_));
  }

  const IssuedJob& job_;
  std::int64_t origin_us_;
  ChunkWriter& writer_;
};

void AddFindings(const IssuedJob& job, const std::vector<CollectiveFinding>& findings,
                 ChunkWriter& writer) {
  writer.BeginTable("finding", {"group", "sequence"}, {"severity", "title", "detail", "try"});
  for (std::size_t i = 0; i < findings.size() && i < kMostFindings; ++i) {
    const CollectiveFinding& one = findings[i];
    const auto group = std::find_if(job.groups.begin(), job.groups.end(),
                                    [&](const auto& g) { return g.name == one.group; });
    writer.AddNumber(group == job.groups.end() ? std::nullopt
                                               : std::optional(group - job.groups.begin()));
    writer.AddNumber(one.sequence);
    writer.AddText(Name(one.severity));
    writer.AddText(one.title);
    writer.AddText(OptionalText(one.detail));
    writer.AddText(OptionalText(one.advice));
  }
  writer.BeginTable("finding_rank", {"finding", "rank"}, {});
  for (std::size_t i = 0; i < findings.size() && i < kMostFindings; ++i) {
    for (std::size_t n = 0; n < findings[i].ranks.size() && n < kMostFindings; ++n) {
      writer.AddNumber(static_cast<std::int64_t>(i));
      writer.AddNumber(static_cast<std::int64_t>(findings[i].ranks[n]));
    }
  }
}

void AddProgress(const std::vector<GraphProgress>& progress, ChunkWriter& writer) {
  writer.BeginTable("progress", {"rank", "scheduled", "reached"}, {"label", "function", "next"});
  for (std::size_t i = 0; i < progress.size() && i < kMostFindings; ++i) {
    if (progress[i].reached == progress[i].scheduled) continue;
    writer.AddNumber(static_cast<std::int64_t>(progress[i].rank));
    writer.AddNumber(static_cast<std::int64_t>(progress[i].scheduled));
    writer.AddNumber(static_cast<std::int64_t>(progress[i].reached));
    writer.AddText(progress[i].label);
    writer.AddText(OptionalText(progress[i].function));
    writer.AddText(OptionalText(progress[i].next));
  }
}

}  // namespace

Result<std::string> CollectivesChunk(Database& database, std::int64_t run_id,
                                     std::int64_t origin_us) {
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, run_id));
  const std::optional<std::int64_t> launch =
      launches.empty() ? std::nullopt : std::optional(launches.back().ordinal);
  ASSIGN_OR_RETURN(const IssuedJob job, LoadIssued(database, run_id, launch));
  ASSIGN_OR_RETURN(const std::vector<CollectiveFinding> findings, FindAllOfIssued(database, job));
  ASSIGN_OR_RETURN(const std::vector<GraphProgress> progress, CompareWithSchedule(database, job));
  std::vector<ShownLine> lines;
  for (std::size_t i = 0; i < job.groups.size(); ++i) {
    for (IssuedLine& line : IssuedLines(job, job.groups[i])) {
      const bool is_odd = line.IsOdd() || line.IsOpen() || !line.timed_out.empty();
      lines.push_back({i, std::move(line), is_odd});
    }
  }
  std::vector<LeftOut> left_out(job.groups.size());
  LeaveOut(job, lines, left_out);
  ChunkWriter writer;
  AddRanks(job, writer);
  AddGroups(job, left_out, writer);
  AddLines(job, lines, writer);
  Cells cells(job, origin_us, writer);
  for (std::size_t i = 0; i < lines.size(); ++i) cells.AddLine(i, lines[i]);
  AddFindings(job, findings, writer);
  AddProgress(progress, writer);
  return writer.Finish();
}

}  // namespace tlparse
