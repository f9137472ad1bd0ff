// What all commands take, from the code that parses it: for the manual page and for completion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace tlparse {

struct DescribedCommand {
  std::string name;        // "findings", "fleet time"; empty: tlparse itself
  std::string_view usage;  // "<db> [--all]"
  std::string_view summary;
  DescribedArguments arguments;
};

// The program itself, then its commands in the order of --help, those of `fleet` behind it.
std::vector<DescribedCommand> DescribeCommands();

}  // namespace tlparse
