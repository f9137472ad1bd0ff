// What `tlparse watch` was asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "answers/check/check.h"
#include "cli/watch_view.h"

namespace tlparse {

struct WatchOptions {
  std::string input;
  std::vector<std::string> more_inputs;  // directories that are searched as well
  std::string output = "tl_out";
  std::optional<std::string> database;
  std::optional<std::string> run;
  std::optional<std::int64_t> until_idle_s;
  std::vector<WatchAlert> alerts;
  std::string command;
  std::optional<std::string> serve;  // an address, see ParseServeAddress
  std::optional<std::int64_t> world_size;
  CheckBudget budget;
  bool overwrite = false;
  bool once = false;
  bool json = false;
  bool is_output_made = false;  // the output directory exists, and is continued
  bool only_findings = false;   // no lines of the state of the ranks
};

// Nothing: continue. A code: exit with it (help or a complaint was printed).
std::optional<int> ParseWatchOptions(std::span<const std::string> arguments, WatchOptions& options);

}  // namespace tlparse
