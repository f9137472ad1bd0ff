// tlparse history <db>: the compiles in order of time.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <functional>
#include <map>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace tlparse {

namespace {

constexpr char kQuery[] =
    "SELECT r.name AS run, h.*, n.ordinal AS launch FROM compile_history h "
    "JOIN run r ON r.id = h.run_id JOIN process p ON p.id = h.process_id "
    "LEFT JOIN launch n ON n.id = p.launch_id "
    "WHERE (?1 IS NULL OR h.rank = ?1) AND (?2 IS NULL OR r.id = ?2) "
    "AND (?3 IS NULL OR n.ordinal = ?3) "
    "ORDER BY h.run_id, h.start_time_us IS NULL, h.start_time_us, h.rank, h.compile_id";

std::string Time(const Statement& row, int column) {
  if (row.IsNull(column)) return "";
  const std::int64_t us = row.Int(column);
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(us / 1'000'000)),
                     us / 1000 % 1000);
}

std::string Duration(const Statement& row, int column) {
  return row.IsNull(column) ? "" : HumanDuration(static_cast<double>(row.Int(column)) / 1e6);
}

// A compile and its lazy backward.
std::string Total(const Statement& row, int duration, int backward) {
  if (row.IsNull(duration) && row.IsNull(backward)) return "";
  return HumanDuration(static_cast<double>(row.Int(duration) + row.Int(backward)) / 1e6);
}

// One line of what happened in the compile besides its times.
std::string Remarks(const Statement& row, const std::function<int(std::string_view)>& at) {
  std::string remarks;
  const auto add = [&](const std::string& remark) {
    remarks += (remarks.empty() ? "" : "; ") + remark;
  };
  if (!row.IsNull(at("fail_type"))) add(fmt::format("{}", row.Text(at("fail_type"))));
  if (row.Int(at("graph_breaks")) > 0)
    add(fmt::format("{} graph breaks", row.Int(at("graph_breaks"))));
  if (!row.IsNull(at("recompile_reason")))
    add(fmt::format("recompiles {}", row.Text(at("recompile_reason"))));
  return remarks;
}

Result<void> PrintHistory(Statement& row, const RunFilter& runs) {
  std::map<std::string, int, std::less<>> columns;
  for (int column = 0; column < row.column_count(); ++column)
    columns[std::string(row.ColumnName(column))] = column;
  const std::function<int(std::string_view)> at = [&](std::string_view name) {
    return columns.find(name)->second;
  };
  using Align = Table::Align;
  Table table = runs.MakeTable({{"rank"},
                                {"compile"},
                                {"start (UTC)"},
                                {"function"},
                                {"status"},
                                {"total", Align::kRight},
                                {"dynamo", Align::kRight},
                                {"inductor", Align::kRight},
                                {"backward", Align::kRight},
                                {"graphs", Align::kRight},
                                {"caches"},
                                {"remarks"}});
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, row.Step());
    if (!has_row) break;
    std::string label(row.Text(at("label")));
    if (row.Int(at("generation")) > 0) label += fmt::format(" #{}", row.Int(at("generation")) + 1);
    runs.Add(
        table, Cell(row, at("run")),
        {Cell(row, at("rank")), label, Time(row, at("start_time_us")), Cell(row, at("function")),
         Cell(row, at("status")), Total(row, at("duration_us"), at("backward_duration_us")),
         Duration(row, at("dynamo_us")), Duration(row, at("inductor_us")),
         Duration(row, at("backward_duration_us")), Cell(row, at("graphs")),
         Cell(row, at("caches")), Remarks(row, at)});
  }
  if (table.empty()) {
    std::puts("no compiles in this database");
  } else {
    table.Print();
  }
  return {};
}

}  // namespace

int RunHistory(std::span<const std::string> arguments) {
  Arguments app(
      "The compiles in order of time: when, how long by phase, status, graph breaks, recompiles "
      "and why, caches.",
      "history");
  AnswerArguments common;
  std::optional<std::int64_t> rank;
  RunFilter run;
  AddAnswerArguments(app, common);
  app.Add("--rank", rank, "only this rank");
  run.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  Result<Statement> statement = database->Prepare(kQuery);
  if (!statement) return ReportError(statement.error());
  statement->Bind(1, rank);
  if (Result<void> bound = run.Bind(*database, 2, *statement); !bound)
    return ReportError(bound.error());
  if (common.json) return PrintRowsAsJson(std::move(*statement), "compiles");
  if (Result<void> printed = PrintHistory(*statement, run); !printed)
    return ReportError(printed.error());
  return kExitDone;
}

}  // namespace tlparse
