// tlparse pull: a run of a fleet as a database of its own.
#include "fleet/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/fleet_arguments.h"
#include "cli/terminal.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

struct PullArguments {
  FleetArguments fleet;
  std::string ranks, day;
  bool latest = false;
  bool overwrite = false;
  bool json = false;
  PullOptions options;
};

Result<void> Complete(PullArguments& arguments) {
  PullOptions& options = arguments.options;
  ASSIGN_OR_RETURN(options.servers, arguments.fleet.Servers());
  ASSIGN_OR_RETURN(options.ranks, ParseRankRanges(arguments.ranks));
  if (options.run_id.empty() == options.job.empty())
    return Fail(ErrorCode::kUsage, "pull needs --run-id UUID, or --job J with --latest or --day");
  if (!options.job.empty() && !arguments.latest && arguments.day.empty())
    return Fail(ErrorCode::kUsage, "--job needs --latest or --day: which of its runs is meant");
  if (!arguments.day.empty()) {
    options.day = ParseDay(arguments.day);
    if (options.day < 0)
      return Fail(ErrorCode::kUsage, fmt::format("'{}' is no day like 2026-11-22", arguments.day));
  }
  if (!arguments.overwrite && access(options.database_path.c_str(), F_OK) == 0)
    return Fail(ErrorCode::kUsage, fmt::format("'{}' is there already: --overwrite replaces it",
                                               options.database_path));
  return {};
}

void Print(const PullSummary& summary, const std::string& path) {
  std::printf("%s: run %s (%s) of job %s, %s: %llu rows, %s\n", Printable(path).c_str(),
              ToText(summary.run_id).c_str(), Printable(summary.run_name).c_str(),
              Printable(summary.job).c_str(), DayText(summary.day).c_str(),
              static_cast<unsigned long long>(summary.rows),
              HumanBytes(static_cast<std::int64_t>(summary.received_bytes)).c_str());
  if (!summary.has_text)
    std::puts("It was pushed without texts: hashes replace source code, values and messages.");
  if (summary.is_newer_schema)
    std::puts("A later tlparse pushed it: data that this one does not know was left out.");
}

JsonWriter PullJson(const PullSummary& summary, const std::string& path) {
  JsonWriter json;
  json.BeginObject().Key("path").String(path).Key("run_id").String(ToText(summary.run_id));
  json.Key("run").String(summary.run_name).Key("job").String(summary.job);
  json.Key("day").String(DayText(summary.day));
  json.Key("loads").Int(static_cast<std::int64_t>(summary.load_count));
  json.Key("rows").Int(static_cast<std::int64_t>(summary.rows));
  json.Key("received_bytes").Int(static_cast<std::int64_t>(summary.received_bytes));
  json.Key("has_text").Bool(summary.has_text).Key("is_newer_schema").Bool(summary.is_newer_schema);
  json.EndObject();
  return json;
}

}  // namespace

int RunPull(std::span<const std::string> given) {
  Arguments app(
      "Copy a run of a fleet's ClickHouse to a database. Every answer prints the same for it as "
      "for the pushed one.",
      "pull");
  PullArguments arguments;
  PullOptions& options = arguments.options;
  arguments.fleet.AddTo(app);
  app.Add("--run-id", options.run_id, "the run's id, as push and 'tlparse fleet jobs' print it");
  app.Add("--job", options.job, "a run of this job");
  app.Flag("--latest", arguments.latest, "of --job: the run that began last");
  app.Add("--day", arguments.day, "of --job: the last run of this day, like 2026-11-22");
  app.Add("--ranks", arguments.ranks, "only these ranks, like 0-63,128");
  app.Add("-o,--output", options.database_path, "the database to write").Required();
  app.Flag("--overwrite", arguments.overwrite, "replace the database if it exists");
  app.Flag("--json", arguments.json, "JSON instead of text");
  if (const std::optional<int> code = app.Parse(given)) return *code;
  if (Result<void> completed = Complete(arguments); !completed)
    return ReportFleetError(completed.error());
  const Result<PullSummary> summary = Pull(options);
  if (!summary) return ReportFleetError(summary.error());
  if (arguments.json) {
    PrintJson(PullJson(*summary, options.database_path));
  } else {
    Print(*summary, options.database_path);
  }
  return kExitDone;
}

}  // namespace tlparse
