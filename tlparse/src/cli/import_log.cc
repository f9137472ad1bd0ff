// tlparse import-log <db>: what was dropped, odd or damaged.
#include <fmt/format.h>

#include <map>

#include "answers/import_log/unknown_names.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"

namespace tlparse {

namespace {

constexpr char kImportLogQuery[] =
    "SELECT i.id, r.name AS run, coalesce(f.path, o.path, i.path) AS path, i.line, "
    "i.byte_offset, i.severity, i.code, i.message, i.advice, i.line_count, i.record_id, i.text "
    "FROM import_log i JOIN run r ON r.id = i.run_id "
    "LEFT JOIN log_file f ON f.id = i.log_file_id LEFT JOIN profile o ON o.id = i.profile_id "
    "WHERE (?1 IS NULL OR i.severity = ?1) AND (?2 IS NULL OR r.id = ?2) "
    "AND (?3 IS NULL OR EXISTS (SELECT 1 FROM process p JOIN launch n ON n.id = p.launch_id "
    "WHERE p.log_file_id = i.log_file_id AND n.ordinal = ?3)) "
    "ORDER BY i.run_id, i.severity = 'info', i.severity = 'warning', i.log_file_id, i.line, i.id";

void PrintAdvice(const std::string& code, const std::string& text) {
  if (Terminal::Out().width > 0)
    PrintWrapped(fmt::format("{}: {}", code, text), 0, 2, Style::kBold);
  else
    fmt::print("{}: {}\n", code, text);
}

// Every row on a line, and each code's advice once, below them.
Result<void> PrintRows(Statement statement, const RunFilter& runs, bool all) {
  std::map<std::string, std::string, std::less<>> advice;
  Table table = runs.MakeTable(
      {{"severity"}, {"code"}, {"where"}, {"lines", Table::Align::kRight}, {"message"}});
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(statement))) {
    std::string where(row.Text("path"));
    if (!row.IsNull("line")) {
      where += fmt::format(":{}", row.Int("line"));
    } else if (!row.IsNull("byte_offset")) {
      where += fmt::format(", byte {}", row.Int("byte_offset"));
    }
    runs.Add(
        table, CellText(row, "run"),
        {CellText(row, "severity"), CellText(row, "code"), where,
         row.Int("line_count") == 1 ? "" : CellText(row, "line_count"), CellText(row, "message")});
    advice.emplace(row.Text("code"), row.Text("advice"));
  }
  if (table.empty()) {
    std::puts("nothing was dropped, odd or damaged");
    return {};
  }
  const std::string below = Captured([&] {
    for (const auto& [code, text] : advice) PrintAdvice(code, text);
  });
  const std::string rows = Captured([&] { table.Print(); });
  const std::size_t room = kMostAnswerText - std::min(kMostAnswerText / 2, CountCharacters(below));
  fmt::print("{}\n", all ? rows : FirstLines(rows, room, "--all"));
  fmt::print("{}", all ? below : FirstLines(below, kMostAnswerText / 2 - 1, "--all"));
  return {};
}

void PrintUnknown(const std::vector<UnknownName>& names) {
  if (names.empty()) {
    std::puts("every name is known");
    return;
  }
  Table table({{"what"}, {"name"}, {"count", Table::Align::kRight}, {"first"}, {"PyTorch"}});
  for (const UnknownName& one : names)
    table.Add({one.kind, one.name, std::to_string(one.count),
               one.path.empty() ? "" : fmt::format("{}:{}", one.path, one.line),
               one.torch_version});
  table.Print();
}

JsonWriter UnknownJson(const std::vector<UnknownName>& names) {
  JsonWriter json;
  json.BeginObject().Key("unknown").BeginArray();
  for (const UnknownName& one : names) {
    json.BeginObject().Key("kind").String(one.kind).Key("name").String(one.name);
    json.Key("count").Int(one.count).Key("path").OptionalString(NonEmpty(one.path));
    json.Key("line").OptionalInt(one.path.empty() ? std::nullopt : std::optional(one.line));
    json.Key("torch_version").OptionalString(NonEmpty(one.torch_version)).EndObject();
  }
  json.EndArray().EndObject();
  return json;
}

// --unknown
int AnswerUnknown(Database& database, const RunFilter& run, bool as_json) {
  if (run.has_launch())
    return ReportError({ErrorCode::kUsage, "--unknown lists the names of runs, not of a --launch"});
  const Result<std::optional<std::int64_t>> run_id = run.RunId(database);
  if (!run_id) return ReportError(run_id.error());
  const Result<std::vector<UnknownName>> names = FindUnknownNames(database, *run_id);
  if (!names) return ReportError(names.error());
  if (as_json) {
    PrintJson(UnknownJson(*names));
  } else {
    PrintUnknown(*names);
  }
  return kExitDone;
}

}  // namespace

int RunImportLog(std::span<const std::string> arguments) {
  Arguments app("What was dropped, odd or damaged in the logs, where, and what to do about it.",
                "import-log");
  AnswerArguments common;
  std::optional<std::string> severity;
  bool is_unknown = false, all = false;
  RunFilter run;
  AddAnswerArguments(app, common);
  app.Add("--severity", severity, "only: error, warning or info")
      .OneOf({"error", "warning", "info"});
  app.Flag(
      "--unknown", is_unknown,
      "names that this tlparse does not know, for example those of a newer PyTorch: record keys, "
      "artifacts, phases of a compile, components of cache keys, members of compilation_metrics");
  app.Flag("--all", all, "every row");
  run.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  if (is_unknown && severity)
    return ReportError({ErrorCode::kUsage, "--unknown lists names, which have no --severity"});
  if (is_unknown) return AnswerUnknown(*database, run, common.json);
  Result<Statement> statement = database->Prepare(kImportLogQuery);
  if (!statement) return ReportError(statement.error());
  if (severity) statement->Bind(1, std::string_view(*severity));
  if (Result<void> bound = run.Bind(*database, 2, *statement); !bound)
    return ReportError(bound.error());
  if (common.json) return PrintRowsAsJson(std::move(*statement), "rows");
  if (Result<void> printed = PrintRows(std::move(*statement), run, all); !printed)
    return ReportError(printed.error());
  return kExitDone;
}

}  // namespace tlparse
