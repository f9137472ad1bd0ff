// A call of a tool as arguments of its command.
#pragma once

#include <string>
#include <vector>

#include "cli/mcp/tools.h"

namespace tlparse {

// `path`: the database. Options come first, then "--" and names.
std::vector<std::string> ArgumentsOf(const McpTool& tool, const McpCall& call,
                                     const std::string& path);

}  // namespace tlparse
