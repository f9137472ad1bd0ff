// What `tlparse run` was asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runner/recorded_variables.h"

namespace tlparse {

enum class OnHang { kDump, kKill, kNone };

struct RunOptions {
  std::vector<std::string> command;
  std::string output;
  std::optional<std::int64_t> world_size;
  HookRequests requests;
  OnHang on_hang = OnHang::kDump;
  std::int64_t hang_after_s = 0;
  bool overwrite = false;
  bool quiet = false;
  bool no_hook = false;
};

// How long a command may be without CPU time before it counts as hanging, unless it is to be ended.
inline constexpr std::int64_t kHangForDump = 30;

// The first of <name>, <name>_2, … that does not exist.
std::string FreeDirectory(const std::string& name);

// Nothing: continue. A code: exit with it (help or a complaint was printed).
std::optional<int> ParseRunOptions(std::span<const std::string> arguments, RunOptions& options);

}  // namespace tlparse
