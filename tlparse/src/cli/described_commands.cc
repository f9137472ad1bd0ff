#include "cli/described_commands.h"

#include "cli/command.h"
#include "cli/commands.h"

namespace tlparse {

std::vector<DescribedCommand> DescribeCommands() {
  std::vector<DescribedCommand> described;
  const auto add = [&](std::string name, const Command& command, const auto& run) {
    described.push_back({std::move(name), command.usage, command.summary, DescribeArguments(run)});
  };
  add("", {"", "<log | directory | -> …", "ingest and report", nullptr}, [] { RunIngest({}); });
  for (const Command& command : Commands()) {
    if (command.run != &RunFleet) {
      add(std::string(command.name), command, [&] { command.run({}); });
      continue;
    }
    described.push_back({"fleet", command.usage, command.summary, {"tlparse fleet", "", {}}});
    for (const Command& one : FleetCommands()) {
      const std::vector<std::string> arguments = {std::string(one.name)};
      add("fleet " + arguments.front(), one, [&] { RunFleet(arguments); });
    }
  }
  return described;
}

}  // namespace tlparse
