#include "facts/finding_kind.h"

#include <algorithm>
#include <iterator>

namespace tlparse {
namespace {

// In the order of FindingKind.
constexpr std::string_view kFindingKinds[] = {
    "compile_failed",
    "crashed",
    "stopped_first",
    "stuck",
    "missing_rank",
    "runs_eagerly",
    "late_rank",
    "several_jobs",
    "config_divergence",
    "input_divergence",
    "graph_divergence",
    "graph_break_divergence",
    "code_divergence",
    "collective_divergence",
    "collective_not_reached",
    "execution_divergence",
    "extra_compile",
    "missing_compile",
    "cold_cache",
    "cache_bypassed",
    "remote_cache_error",
    "one_key_two_codes",
    "recompile_limit",
    "recompiles",
    "graph_break",
    "slow_rank",
    "straggler",
    "restarted",
    "launch_differs",
    "import_errors",
};
static_assert(std::size(kFindingKinds) == kFindingKindCount);

// In the order of FindingSeverity.
constexpr std::string_view kFindingSeverities[] = {"error", "warning", "note"};

template <typename Enum, std::size_t N>
std::optional<Enum> Find(const std::string_view (&names)[N], std::string_view name) {
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<Enum>(found - names));
}

}  // namespace

std::string_view Name(FindingKind kind) { return kFindingKinds[static_cast<std::size_t>(kind)]; }
std::string_view Name(FindingSeverity severity) {
  return kFindingSeverities[static_cast<std::size_t>(severity)];
}

std::optional<FindingKind> FindingKindOf(std::string_view name) {
  return Find<FindingKind>(kFindingKinds, name);
}
std::optional<FindingSeverity> FindingSeverityOf(std::string_view name) {
  return Find<FindingSeverity>(kFindingSeverities, name);
}

}  // namespace tlparse
