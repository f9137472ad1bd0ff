// What the commands that answer about the ranks of one run do alike: --run, --launch, --all,
// --json, the database; then ask, and print.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/answer.h"
#include "cli/command.h"

namespace tlparse {

// `app` has the options of the command itself. `run` and `launch` are set before
// `analyze(database)` is called; its answer goes to `to_json(answer)` or `print(answer, all)`.
// Returns the exit code.
template <typename Analyze, typename ToJson, typename Print>
int RunRankAnswer(Arguments& app, std::span<const std::string> arguments,
                  const std::string& help_of_all, std::string& run,
                  std::optional<std::int64_t>& launch, const Analyze& analyze,
                  const ToJson& to_json, const Print& print) {
  AnswerArguments common;
  bool all = false;
  AddAnswerArguments(app, common);
  app.Add("--run", run, "the run of this name (default: the latest)");
  app.Add("--launch", launch, "this launch (1 is the first; default: the latest)").Positive();
  app.Flag("--all", all, help_of_all);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  const auto answer = analyze(*database);
  if (!answer) return ReportError(answer.error());
  if (common.json) {
    PrintJson(to_json(*answer));
  } else {
    print(*answer, all);
  }
  return kExitDone;
}

}  // namespace tlparse
