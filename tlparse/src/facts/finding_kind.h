// Kinds and severities of findings, and their names in JSON, on the command line and on the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

// In JSON by name; schemas/json/answers/findings.schema.json has the list with a line on each.
enum class FindingKind : std::uint8_t {
  kCompileFailed,
  kCrashed,
  kStoppedFirst,
  kStuck,
  kMissingRank,
  kRunsEagerly,
  kLateRank,
  kSeveralJobs,
  kConfigDivergence,
  kInputDivergence,
  kGraphDivergence,
  kGraphBreakDivergence,
  kCodeDivergence,
  kCollectiveDivergence,
  kCollectiveNotReached,
  kExecutionDivergence,
  kExtraCompile,
  kMissingCompile,
  kColdCache,
  kCacheBypassed,
  kRemoteCacheError,
  kOneKeyTwoCodes,
  kRecompileLimit,
  kRecompiles,
  kGraphBreak,
  kSlowRank,
  kStraggler,
  kRestarted,
  kLaunchDiffers,
  kImportErrors,
};
inline constexpr std::size_t kFindingKindCount =
    static_cast<std::size_t>(FindingKind::kImportErrors) + 1;
std::string_view Name(FindingKind kind);  // "compile_failed"
std::optional<FindingKind> FindingKindOf(std::string_view name);

enum class FindingSeverity : std::uint8_t {
  kError,    // wrong or lost work
  kWarning,  // costs time, or ranks differ
  kNote,     // worth knowing
};
std::string_view Name(FindingSeverity severity);  // "error"
std::optional<FindingSeverity> FindingSeverityOf(std::string_view name);

}  // namespace tlparse
