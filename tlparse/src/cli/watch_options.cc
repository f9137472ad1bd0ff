#include "cli/watch_options.h"

#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/budget.h"
#include "cli/command.h"

namespace tlparse {

namespace {

// "60s", "5m" or "60".
Result<std::int64_t> ParseSeconds(const std::string& text) {
  std::int64_t factor = 1;
  std::string digits = text;
  if (digits.ends_with('s') || digits.ends_with('m')) {
    factor = digits.ends_with('m') ? 60 : 1;
    digits.pop_back();
  }
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return Fail(ErrorCode::kUsage, fmt::format("--until-idle '{}': give seconds, as in 60s", text));
  return std::stoll(digits) * factor;
}

Result<void> Check(const std::optional<std::string>& until_idle,
                   const std::vector<std::string>& alerts, WatchOptions& options) {
  for (const std::string& text : alerts) {
    ASSIGN_OR_RETURN(const WatchAlert alert, ParseAlert(text));
    options.alerts.push_back(alert);
  }
  if (alerts.empty() != options.command.empty())
    return Fail(ErrorCode::kUsage, "--alert and --exec belong together");
  if (until_idle) {
    ASSIGN_OR_RETURN(options.until_idle_s, ParseSeconds(*until_idle));
  }
  if (options.serve && options.once)
    return Fail(ErrorCode::kUsage, "--serve shows a job that is followed, --once follows none");
  return {};
}

}  // namespace

std::optional<int> ParseWatchOptions(std::span<const std::string> arguments,
                                     WatchOptions& options) {
  Arguments app(
      "Ingest the logs of a job while it runs, and show the state of its ranks and the findings. "
      "Ctrl+C ends it; then the report is written. If it ends in any other way, the database is "
      "consistent and the next watch continues with it. A job of which no log has grown for an "
      "hour (by the times of its files, and by its last records until it grows) is shown as one "
      "that has ended; it counts as running again when a log grows.",
      "watch");
  std::optional<std::string> until_idle;
  std::vector<std::string> alerts;
  app.Add("directory", options.input,
          "the job's TORCH_TRACE directory; may still be empty. '-': standard input, as 'ssh host "
          "tail -n +1 -f …' writes it: a line '==> name <==' switches the file")
      .Required();
  app.Add("-o,--output", options.output, "output directory").ShowDefault();
  app.Flag("--overwrite", options.overwrite,
           "replace the output directory, if an earlier tlparse wrote it");
  app.Add("--db", options.database, "write this database, and no report");
  app.Add("--run", options.run, "name of the run in the database (default: the directory)");
  app.Flag("--once", options.once, "print the current state and exit");
  app.Flag("--json", options.json, "one JSON object a line for each change");
  app.Add("--until-idle", until_idle,
          "end when no log has grown for this long, as in 60s; exit with 1 if a finding of "
          "severity error is open");
  app.Add("--alert", alerts,
          "run the command of --exec once for each finding of this kind that has been open for "
          "this long, as in 'stuck>300s'")
      .OneValueEach();
  app.Add("--exec", options.command,
          "a command of sh; gets the finding as JSON on standard input, and TLPARSE_FINDING_KIND, "
          "_ID and _TITLE in its environment");
  app.FlagWithText(
      "--serve", options.serve,
      "also serve the page, which follows the job; "
      "--serve=ADDRESS as in 0.0.0.0:8577 (default: port 8577 or any that is free, for "
      "this machine only: everyone who can reach it reads everything in the logs)");
  app.Add("--world-size", options.world_size,
          "expected number of ranks (default: as many as the inputs show)")
      .Positive();
  AddBudgetArguments(app, options.budget);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (Result<void> checked = Check(until_idle, alerts, options); !checked)
    return ReportError(checked.error());
  return std::nullopt;
}

}  // namespace tlparse
