// tlparse history <db>: the compiles in order of time.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <functional>
#include <map>

#include "artifacts/common/compile_status.h"
#include "artifacts/common/text/recompile_limit.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "facts/compiles/recompile_reasons.h"

namespace tlparse {

namespace {

// Calls are those of the graph of the compile that was called most. A profile that ended before the
// compile began says nothing about it. Ranges of ids, not "?2 IS NULL OR": these are searched by index, so that of a database with
// other runs only the named one is read.
constexpr char kCompilesQuery[] =
    "WITH ran AS MATERIALIZED (SELECT compile_id, max(calls) AS calls, "
    "sum(us) AS run_us, sum(device_us) AS device_us FROM (SELECT l.compile_id, l.graph_id, "
    "count(*) AS calls, sum(s.duration_ns) / 1e3 AS us, sum(l.device_ns) / 1e3 AS device_us "
    "FROM profile p JOIN compiled_slice_row s ON s.profile_id = p.id "
    "JOIN compiled_slice_link_row l ON l.slice_id = s.id "
    "WHERE p.run_id BETWEEN ifnull(?2, 0) AND ifnull(?2, 9223372036854775807) "
    "AND p.overlaps_id IS NULL AND l.is_call = 1 AND l.compile_id IS NOT NULL GROUP BY 1, 2) "
    "GROUP BY 1) "
    "SELECT r.name AS run, h.*, n.ordinal AS launch, p.pid, CASE WHEN ran.calls IS NOT NULL "
    "OR (EXISTS (SELECT 1 FROM profile x WHERE x.process_id = h.process_id "
    "AND x.kind IN ('kineto', 'nsys') AND x.end_us >= h.start_time_us) AND EXISTS (SELECT 1 "
    "FROM graph g WHERE g.compile_id = h.compile_id)) THEN coalesce(ran.calls, 0) END AS calls, "
    "ran.run_us, ran.device_us, (SELECT group_concat(guard, '; ') "
    "FROM (SELECT 'after ' || coalesce(m.prior_label, '?') || ': ' || coalesce(m.guard, "
    "m.reason) AS guard FROM recompile m WHERE m.compile_id = h.compile_id "
    "ORDER BY m.record_id, m.ordinal)) AS failed_guards FROM compile_history h "
    "LEFT JOIN ran ON ran.compile_id = h.compile_id JOIN run r ON r.id = h.run_id "
    "JOIN process p ON p.id = h.process_id LEFT JOIN launch n ON n.id = p.launch_id "
    "WHERE (?1 IS NULL OR h.rank = ?1) AND r.id BETWEEN ifnull(?2, 0) "
    "AND ifnull(?2, 9223372036854775807) AND (?3 IS NULL OR n.ordinal = ?3) "
    "ORDER BY h.run_id, h.start_time_us IS NULL, h.start_time_us, h.rank, h.compile_id";

constexpr char kElsewhereInText[] =
    "of its text of TORCH_LOGS see 'tlparse recompiles' and the view torch_log_graph_break";

std::string Time(const Statement& row, int column) {
  if (row.IsNull(column)) return "";
  const std::int64_t us = row.Int(column);
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(us / 1'000'000)),
                     us / 1000 % 1000);
}

std::string Duration(const Statement& row, int column) {
  return row.IsNull(column) ? "" : HumanDuration(static_cast<double>(row.Int(column)) / 1e6);
}

// Of a compile and its lazy backward. Where the metrics of the compile itself are not in the log,
// that of its backward is no total.
std::string Total(const Statement& row, bool has_metrics, int duration, int backward) {
  if (!has_metrics || (row.IsNull(duration) && row.IsNull(backward))) return "";
  return HumanDuration(static_cast<double>(row.Int(duration) + row.Int(backward)) / 1e6);
}

// One line of what happened in the compile besides its times.
std::string Remarks(const Statement& row, const std::function<int(std::string_view)>& at,
                    const std::string& failed_guards) {
  std::string remarks;
  const auto add = [&](const std::string& remark) {
    remarks += (remarks.empty() ? "" : "; ") + remark;
  };
  if (!row.IsNull(at("fail_type")))
    add(IsRecompileLimit(row.Text(at("fail_type")), row.Text(at("fail_reason")))
            ? "refused at the recompile limit"
            : std::string(row.Text(at("fail_type"))));
  if (row.Int(at("graph_breaks")) > 0)
    add(fmt::format("{} graph break{}", row.Int(at("graph_breaks")),
                    row.Int(at("graph_breaks")) == 1 ? "" : "s"));
  if (!failed_guards.empty()) add("recompiled " + failed_guards);
  if (!row.IsNull(at("calls")) && row.Int(at("calls")) < 2)
    add(row.Int(at("calls")) == 0 ? "no call in the profiles" : "one call in the profiles");
  return remarks;
}

std::vector<Table::Column> Headings(bool has_profiles) {
  using Align = Table::Align;
  std::vector<Table::Column> headings = {{"rank"},
                                         {"compile"},
                                         {"start (UTC)", Align::kLeft, 2},
                                         {"function"},
                                         {"status"},
                                         {"total", Align::kRight},
                                         {"dynamo", Align::kRight, 5},
                                         {"inductor", Align::kRight, 4},
                                         {"backward", Align::kRight, 6},
                                         {"graphs", Align::kRight, 3}};
  if (has_profiles) {
    headings.push_back({"calls", Align::kRight});
    headings.push_back({"run time", Align::kRight});
  }
  headings.push_back({"caches", Align::kLeft, 1});
  headings.push_back({"remarks"});
  return headings;
}

Result<void> PrintHistory(Database& database, Statement& row, const RunFilter& runs) {
  ASSIGN_OR_RETURN(
      const std::int64_t has_profiles,
      database.QueryInt(
          "SELECT EXISTS (SELECT 1 FROM profile WHERE kind IN ('kineto', 'nsys', 'libtrace'))"));
  std::map<std::string, int, std::less<>> columns;
  for (int column = 0; column < row.column_count(); ++column)
    columns[std::string(row.ColumnName(column))] = column;
  const std::function<int(std::string_view)> at = [&](std::string_view name) {
    return columns.find(name)->second;
  };
  ASSIGN_OR_RETURN(const std::int64_t has_processes,
                   database.QueryInt("SELECT EXISTS (SELECT 1 FROM process p "
                                     "JOIN log_file f ON f.id = p.log_file_id WHERE p.rank IS NULL "
                                     "GROUP BY f.run_id HAVING count(*) > 1)"));
  Table table = runs.MakeTableOfLaunches(Headings(has_profiles != 0));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, row.Step());
    if (!has_row) break;
    std::string label(row.Text(at("label")));
    if (row.Int(at("generation")) > 0) label += fmt::format(" #{}", row.Int(at("generation")) + 1);
    const bool has_metrics = !row.IsNull(at("duration_us"));
    std::vector<std::string> cells = {
        row.IsNull(at("rank")) && has_processes != 0 ? "pid " + CellText(row, at("pid"))
                                                     : CellText(row, at("rank")),
        label,
        Time(row, at("start_time_us")),
        CellText(row, at("function")),
        std::string(InWords(CompileStatusFrom(row.Text(at("status"))))),
        Total(row, has_metrics, at("duration_us"), at("backward_duration_us")),
        Duration(row, at("dynamo_us")),
        Total(row, has_metrics, at("inductor_us"), at("backward_inductor_us")),
        Duration(row, at("backward_duration_us")),
        CellText(row, at("graphs"))};
    if (has_profiles != 0) {
      cells.push_back(CellText(row, at("calls")));
      cells.push_back(Duration(row, at("run_us")));
    }
    cells.push_back(CellText(row, at("caches")));
    std::string failed_guards;
    if (!row.IsNull(at("failed_guards"))) {
      ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries,
                       LoadFailedEntries(database, row.Int(at("compile_id"))));
      failed_guards = FailedEntriesText(entries, "after ");
    }
    cells.push_back(Remarks(row, at, failed_guards));
    runs.AddOfLaunch(table, CellText(row, at("run")), CellText(row, at("launch")),
                     std::move(cells));
  }
  if (table.empty()) {
    ASSIGN_OR_RETURN(const std::string why_none, runs.WhyNone(database, kElsewhereInText));
    std::puts(why_none.empty() ? "no compiles in this database" : why_none.c_str());
  } else {
    table.Print();
  }
  return {};
}

// The failed guards as the table has them.
Result<void> AddGuardsInWords(Database& database, const Statement& row, JsonWriter& json) {
  std::optional<std::string> words;
  for (int column = 0; column < row.column_count(); ++column) {
    if (std::string_view(row.ColumnName(column)) != "compile_id") continue;
    ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries,
                     LoadFailedEntries(database, row.Int(column)));
    if (!entries.empty()) words = FailedEntriesText(entries, "after ");
  }
  json.Key("failed_guards_in_words").OptionalString(words);
  return {};
}

}  // namespace

int RunHistory(std::span<const std::string> arguments) {
  return RunRowsAnswer(
      {"history",
       "The compiles in order of time: when, how long by phase, status, graph breaks, recompiles "
       "and why, caches; with profiles how often each was called, and how long it ran.",
       kCompilesQuery, "compiles", &PrintHistory, &AddGuardsInWords, kElsewhereInText},
      arguments);
}

}  // namespace tlparse
