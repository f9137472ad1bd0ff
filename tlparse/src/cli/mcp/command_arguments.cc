#include "cli/mcp/command_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/mcp/fit.h"

namespace tlparse {
namespace {

// "0,3" → --rank=0 --rank=3
void AddPair(std::string_view pair, std::string_view option, std::vector<std::string>& arguments) {
  while (!pair.empty()) {
    const std::string_view one = pair.substr(0, pair.find(','));
    arguments.push_back(fmt::format("--{}={}", option, one));
    pair.remove_prefix(std::min(pair.size(), one.size() + 1));
  }
}

}  // namespace

std::vector<std::string> ArgumentsOf(const McpTool& tool, const McpCall& call,
                                     const std::string& path) {
  std::vector<std::string> arguments = {"--json"};
  std::vector<std::string> names = {path};
  if (tool.name == "diff") {
    AddPair(call.Text("ranks"), "rank", arguments);
    AddPair(call.Text("launches"), "launch", arguments);
    if (!call.Text("code").empty()) arguments.emplace_back("--code");
    if (!call.Text("other").empty()) names.emplace_back(call.Text("other"));
  } else if (tool.name == "explain") {
    names.clear();
    if (!call.Text("kind").empty()) names.emplace_back(call.Text("kind"));
  } else {
    arguments.insert(arguments.end(), call.options.begin(), call.options.end());
    names.insert(names.end(), call.names.begin(), call.names.end());
    if (std::find(tool.omitted.begin(), tool.omitted.end(), "engine_findings") !=
        tool.omitted.end())
      arguments.emplace_back("--no-findings");
    if (!tool.row_count.empty()) {
      // The rows that can be shown; of a list all that may hold it.
      const bool is_of_list = !call.list.empty();
      const std::size_t most = MostRows(is_of_list ? kMostBudget : call.budget);
      const std::size_t limit = call.limit == 0 || is_of_list ? most : std::min(most, call.limit);
      arguments.push_back(fmt::format("--limit={}", limit));
      arguments.push_back(fmt::format("--skip={}", is_of_list ? 0 : call.cursor));
    }
    // Both tools need the same: what one has read serves the other.
    if (tool.name == "evidence" || tool.name == "findings") arguments.emplace_back("--evidence");
  }
  // What follows is no option, whatever it begins with.
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), names.begin(), names.end());
  return arguments;
}

}  // namespace tlparse
