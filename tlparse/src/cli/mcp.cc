// tlparse mcp [dir | db …]: the answers for agents, over standard input and output.
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/mcp/server.h"

namespace tlparse {

int RunMcp(std::span<const std::string> arguments) {
  Arguments app(
      "A server of the Model Context Protocol over standard input and output: the answers of "
      "tlparse as tools of an agent. It only reads, and opens no network connection. The first "
      "name is what a tool is asked about unless it names another.",
      "mcp");
  std::vector<std::string> names;
  constexpr int kMost = 1000;
  app.Add("inputs", names, "databases, output directories, logs or directories of logs")
      .Times(0, kMost);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  McpServer(std::move(names), STDIN_FILENO, STDOUT_FILENO).Run();
  return kExitDone;
}

}  // namespace tlparse
