// tlparse fleet <what>: questions over all runs that were pushed, and the care of their tables.
#include <fmt/format.h>

#include <charconv>

#include "base/plural.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/fleet_answers.h"
#include "cli/fleet_arguments.h"
#include "cli/nearest.h"
#include "cli/terminal.h"
#include "fleet/care.h"
#include "fleet/server_tables.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using GivenArguments = std::span<const std::string>;

// 400d or 400; 0: anything else. A number of weeks or months must not be read as days.
int ParseDays(std::string_view text) {
  if (text.ends_with('d')) text.remove_suffix(1);
  int days = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), days);
  return error == std::errc() && end == text.data() + text.size() ? days : 0;
}

int RunInit(GivenArguments given) {
  Arguments app(
      "Create the fleet's database and tables on every --url, and add what is missing. To be run "
      "once by an administrator; may be repeated.",
      "fleet init");
  FleetArguments fleet;
  InitOptions options;
  std::string retention;
  bool print = false;
  fleet.AddTo(app);
  app.Add("--retention", retention, "delete older runs, like 400d (servers of 20.x and later)");
  app.Add(
      "--cluster", options.cluster,
      "name of the cluster in the servers' configuration: adds tables <name>_all over its shards");
  app.Flag("--print", print, "print the statements for a modern server, send nothing");
  if (const std::optional<int> code = app.Parse(given)) return *code;
  if (!retention.empty()) {
    options.retention_days = ParseDays(retention);
    if (options.retention_days <= 0)
      return ReportError({ErrorCode::kUsage, "--retention is a number of days, like 400d"});
  }
  if (print) {
    const Result<FleetSchema> schema = MakeFleetSchema();
    if (!schema) return ReportError(schema.error());
    const auto tables = TableDefinitions(*schema, {25}, options.retention_days);
    if (!tables) return ReportError(tables.error());
    for (const TableDefinition& table : *tables)
      std::printf("%s;\n", CreateStatement(table, fleet.database).c_str());
    return kExitDone;
  }
  const Result<std::vector<ClickHouseOptions>> servers = fleet.Servers();
  if (!servers) return ReportFleetError(servers.error());
  for (const ClickHouseOptions& server : *servers) {
    const Result<InitSummary> summary = InitServer(server, options);
    if (!summary) return ReportFleetError(summary.error());
    std::printf("%s: %zu tables, %zu made, %zu columns added\n", Printable(server.url).c_str(),
                summary->table_count, summary->made_tables.size(), summary->added_columns.size());
    if (options.retention_days == 0) continue;
    if (!summary->has_retention) {
      std::printf("  it cannot delete old rows itself: run 'tlparse fleet gc --older-than %dd'\n",
                  options.retention_days);
    } else if (summary->made_tables.size() < summary->table_count) {
      std::puts("  --retention is that of the tables made now; the others keep theirs");
    }
  }
  return kExitDone;
}

int RunDelete(GivenArguments given) {
  Arguments app("Remove a run: hidden at once, deleted by the server in the background.",
                "fleet delete");
  FleetArguments fleet;
  std::string run_id;
  fleet.AddTo(app);
  app.Add("--run-id", run_id, "the run's id").Required();
  if (const std::optional<int> code = app.Parse(given)) return *code;
  const Result<std::vector<ClickHouseOptions>> servers = fleet.Servers();
  if (!servers) return ReportFleetError(servers.error());
  bool was_there = false;
  std::optional<Error> not_found;
  for (const ClickHouseOptions& server : *servers) {
    Result<ClickHouseClient> client = ClickHouseClient::Make(server);
    if (!client) return ReportFleetError(client.error());
    const Result<RemovedLoads> removed = DeleteRun(*client, run_id);
    if (!removed && removed.error().code == ErrorCode::kNotFound) {
      not_found = removed.error();
      continue;
    }
    if (!removed) return ReportFleetError(removed.error());
    was_there = true;
    std::printf("%s: %s of run %s removed\n", Printable(server.url).c_str(),
                Count(removed->loads.size(), "load").c_str(), run_id.c_str());
  }
  return was_there ? kExitDone : ReportFleetError(*not_found);
}

int RunGc(GivenArguments given) {
  Arguments app("Remove the rows of killed and of replaced pushes, and of days that are too old.",
                "fleet gc");
  FleetArguments fleet;
  GcOptions options;
  std::string older_than;
  int min_age_hours = 24;
  fleet.AddTo(app);
  app.Add("--older-than", older_than, "also remove runs that are older, like 400d");
  app.Add("--min-age-hours", min_age_hours,
          "keep unfinished pushes for this long: they may still be running")
      .ShowDefault();
  app.Flag("--dry-run", options.dry_run, "say what would be removed");
  if (const std::optional<int> code = app.Parse(given)) return *code;
  options.min_age_s = std::int64_t{min_age_hours} * 3600;
  if (!older_than.empty()) {
    options.older_than_days = ParseDays(older_than);
    if (options.older_than_days <= 0 || min_age_hours < 0)
      return ReportError({ErrorCode::kUsage, "--older-than is a number of days, like 400d"});
  }
  const Result<std::vector<ClickHouseOptions>> servers = fleet.Servers();
  if (!servers) return ReportFleetError(servers.error());
  for (const ClickHouseOptions& server : *servers) {
    Result<ClickHouseClient> client = ClickHouseClient::Make(server);
    if (!client) return ReportFleetError(client.error());
    const Result<GcSummary> summary = CollectGarbage(*client, options);
    if (!summary) return ReportFleetError(summary.error());
    std::printf(
        "%s: %zu unfinished and %zu replaced or withdrawn loads%s%s\n",
        Printable(server.url).c_str(), summary->unfinished.loads.size(), summary->dead.loads.size(),
        summary->before_day >= 0 ? (", days before " + DayText(summary->before_day)).c_str() : "",
        options.dry_run ? " would be removed" : " removed");
  }
  return kExitDone;
}

// Without a function: an answer.
constexpr Command kFleetCommands[] = {
    {"init", "[--retention 400d] [--cluster C]", "create the tables, or add what is missing",
     &RunInit},
    {"jobs", "[--job J] [--since 30d]", "runs that were pushed", nullptr},
    {"time", "[--job J] [--function F]", "compile time, where it changed, and why", nullptr},
    {"cache", "[--job J]", "hit rates, and components that change most often", nullptr},
    {"ranks", "[--job J | --run-id UUID]", "one run: what differs between its ranks", nullptr},
    {"breaks", "[--job J]", "graph breaks by cost", nullptr},
    {"recompiles", "[--job J]", "recompiles by cost", nullptr},
    {"code", "[--job J]", "generated code that differs between versions of torch", nullptr},
    {"kernel", "NAME [--job J]", "runs and lines of a kernel", nullptr},
    {"findings", "[--job J]", "findings of all runs, new ones marked", nullptr},
    {"gc", "[--older-than 400d]", "remove rows that are unfinished, replaced or too old", &RunGc},
    {"delete", "--run-id UUID", "remove a run", &RunDelete},
};

void PrintHelp() {
  std::puts("Questions about all pushed runs, and maintenance of their tables.\n");
  std::puts("Usage: tlparse fleet <command> --url https://host:8443 [options]\n");
  for (const Command& one : kFleetCommands)
    std::printf("  %-44s %s\n", fmt::format("{} {}", one.name, one.usage).c_str(),
                std::string(one.summary).c_str());
  std::puts("\n'tlparse fleet <command> --help' lists the options of each.");
}

}  // namespace

std::span<const Command> FleetCommands() { return kFleetCommands; }

int RunFleet(std::span<const std::string> arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    PrintHelp();
    return arguments.empty() ? kExitUsage : kExitDone;
  }
  for (const Command& one : kFleetCommands)
    if (one.name == arguments[0])
      return one.run == nullptr ? RunFleetAnswer(arguments[0], arguments.subspan(1))
                                : one.run(arguments.subspan(1));
  std::vector<std::string> names;
  for (const Command& one : kFleetCommands) names.emplace_back(one.name);
  const std::string meant = Nearest(arguments[0], names);
  return ReportError(
      {ErrorCode::kUsage, fmt::format("there is no 'tlparse fleet {}'; {}", arguments[0],
                                      meant.empty() ? "see 'tlparse fleet --help'"
                                                    : fmt::format("did you mean '{}'?", meant))});
}

}  // namespace tlparse
