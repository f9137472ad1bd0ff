// tlparse fleet <what>: questions over all runs that were pushed, and the care of their tables.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/fleet_arguments.h"
#include "cli/terminal.h"
#include "fleet/server_tables.h"

namespace tlparse {
namespace {

using Given = std::span<const std::string>;

int RunInit(Given given) {
  Arguments app(
      "Make the fleet's database and tables on every --url, and add what is missing; once, by an "
      "administrator. May be repeated.",
      "init");
  FleetArguments fleet;
  InitOptions options;
  std::string retention;
  bool print = false;
  fleet.AddTo(app);
  app.Add("--retention", retention, "delete what is older, like 400d (servers of 20.x and later)");
  app.Add(
      "--cluster", options.cluster,
      "name of the cluster in the servers' configuration: adds tables <name>_all over its shards");
  app.Flag("--print", print, "print the statements for a modern server, send nothing");
  if (const std::optional<int> code = app.Parse(given)) return *code;
  if (!retention.empty()) {
    if (retention.back() == 'd') retention.pop_back();
    options.retention_days = std::atoi(retention.c_str());
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
  }
  return kExitDone;
}

struct Subcommand {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
  int (*run)(Given arguments);
};
constexpr Subcommand kSubcommands[] = {
    {"init", "[--retention 400d] [--cluster C]", "make the tables, or add what is missing",
     &RunInit},
};

void PrintHelp() {
  std::puts("Questions over all runs that were pushed, and the care of their tables.\n");
  std::puts("Usage: tlparse fleet <command> --url https://host:8443 [options]\n");
  for (const Subcommand& one : kSubcommands)
    std::printf("  %-44s %s\n", fmt::format("{} {}", one.name, one.usage).c_str(),
                std::string(one.summary).c_str());
  std::puts("\n'tlparse fleet <command> --help' lists the options of each.");
}

}  // namespace

int RunFleet(std::span<const std::string> arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    PrintHelp();
    return arguments.empty() ? kExitUsage : kExitDone;
  }
  for (const Subcommand& one : kSubcommands)
    if (one.name == arguments[0]) return one.run(arguments.subspan(1));
  return ReportError(
      {ErrorCode::kUsage, fmt::format("there is no 'tlparse fleet {}'; see 'tlparse fleet "
                                      "--help'",
                                      arguments[0])});
}

}  // namespace tlparse
