// tlparse import-log <db>: what was dropped, odd or damaged.
#include "queries/answers/import_log/import_log.h"

#include <fmt/format.h>

#include <map>

#include "answers/import_log/unknown_names.h"
#include "base/fields.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"

namespace tlparse {

namespace {

void PrintAdvice(const std::string& code, const std::string& text) {
  if (Terminal::Out().width > 0)
    PrintWrapped(fmt::format("{}: {}", code, text), 0, 2, Style::kBold);
  else
    fmt::print("{}: {}\n", code, text);
}

// Every row on a line, and each code's advice once, below them.
Result<void> PrintRows(QueryRows<ProblemOfInput> rows, const RunFilter& runs, bool all) {
  std::map<std::string, std::string, std::less<>> advice;
  Table table = runs.MakeTable(
      {{"severity"}, {"code"}, {"where"}, {"lines", Table::Align::kRight}, {"message"}});
  FOR_EACH_ROW(const ProblemOfInput& row, std::move(rows)) {
    std::string where(row.path);
    if (row.line) {
      where += fmt::format(":{}", *row.line);
    } else if (row.byte_offset) {
      where += fmt::format(", byte {}", *row.byte_offset);
    }
    runs.Add(table, std::string(row.run),
             {std::string(row.severity), std::string(row.code), where,
              row.line_count == 1 ? "" : CellText(row.line_count), std::string(row.message)});
    advice.emplace(row.code, row.advice);
  }
  if (table.empty()) {
    std::puts("nothing was dropped, odd or damaged");
    return {};
  }
  const std::string below = Captured([&] {
    for (const auto& [code, text] : advice) PrintAdvice(code, text);
  });
  const std::string lines = Captured([&] { table.Print(); });
  const std::size_t room = kMostAnswerText - std::min(kMostAnswerText / 2, CountCharacters(below));
  fmt::print("{}\n", all ? lines : FirstLines(lines, room, "--all"));
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

constexpr std::string_view kKindsOfNames[] = {"record", "artifact", "phase", "component", "metric"};

struct UnknownNames {
  std::span<const UnknownName> unknown;
};

}  // namespace

template <>
struct FieldsOf<UnknownName> {
  using Of = UnknownName;
  static constexpr FieldList list{
      Field{"kind", &Of::kind, "", kKindsOfNames},
      Field{"name", &Of::name},
      Field{"count", AtLeast<1>(&Of::count),
            "records; of a component: distinct components of all runs"},
      Field{"path", OrNull{&Of::path}, "the log of the first one"},
      Field{"line",
            [](const Of& of) { return of.path.empty() ? std::nullopt : std::optional(of.line); }},
      Field{"torch_version", OrNull{&Of::torch_version}, "of the process that wrote it"},
  };
};

template <>
struct FieldsOf<UnknownNames> {
  static constexpr std::string_view description =
      "Names in the logs that this tlparse does not know, by kind and name.";
  static constexpr FieldList list{Field{"unknown", &UnknownNames::unknown}};
};

std::string UnknownNamesSchema() {
  return SchemaOf<UnknownNames>("tlparse import-log --unknown --json");
}

namespace {

// --unknown
Result<void> AnswerUnknown(Database& database, const RunFilter& run, bool as_json) {
  if (run.has_launch())
    return Fail(ErrorCode::kUsage, "--unknown lists the names of runs, not of a --launch");
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> run_id, run.RunId(database));
  ASSIGN_OR_RETURN(const std::vector<UnknownName> names, FindUnknownNames(database, run_id));
  as_json ? PrintJson(ToJson(UnknownNames{names})) : PrintUnknown(names);
  return {};
}

struct ImportLogOptions {
  std::optional<std::string> severity;
  AskedParticipant asked;
  RunFilter run;
  bool is_unknown = false, json = false, all = false;
};

Result<void> AnswerImportLog(Database& database, ImportLogOptions& options) {
  if (options.is_unknown && options.severity)
    return Fail(ErrorCode::kUsage, "--unknown lists names, which have no --severity");
  if (options.is_unknown) return AnswerUnknown(database, options.run, options.json);
  ASSIGN_OR_RETURN(const RunFilter::Named named, options.run.Find(database));
  RETURN_IF_ERROR(CheckAsked(database, options.asked, named.run_id, named.launch));
  const ProblemOfInput::Parameters parameters{options.severity, named.run_id, named.launch,
                                              options.asked.rank, options.asked.pid};
  const std::string only = options.asked.IsGiven() ? options.asked.Only(0, "") : std::string();
  if (!options.json) {
    RETURN_IF_ERROR(
        PrintRows(Query<ProblemOfInput>(database, parameters), options.run, options.all));
    if (!only.empty()) PrintWrapped(only, 0, 2);
    return {};
  }
  // As it is stored: the bytes concerned may be no text.
  ASSIGN_OR_RETURN(Statement statement, database.Prepare(ProblemOfInput::kSql));
  ProblemOfInput::Bind(parameters, statement);
  return PrintRowsAsJson(std::move(statement), only);
}

}  // namespace

int RunImportLog(std::span<const std::string> arguments) {
  Arguments app("What was dropped, odd or damaged in the logs, where, and what to do about it.",
                "import-log");
  AnswerArguments common;
  ImportLogOptions options;
  AddAnswerArguments(app, common);
  app.Add("--severity", options.severity, "only: error, warning or info")
      .OneOf({"error", "warning", "info"});
  AddAsked(app, options.asked);
  app.Flag(
      "--unknown", options.is_unknown,
      "names that this tlparse does not know, for example those of a newer PyTorch: record keys, "
      "artifacts, phases of a compile, components of cache keys, members of compilation_metrics");
  app.Flag("--all", options.all, "every row");
  options.run.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  options.json = common.json;
  return AnswerFrom(common.database,
                    [&](Database& database) { return AnswerImportLog(database, options); });
}

}  // namespace tlparse
