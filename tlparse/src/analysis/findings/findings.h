// What is wrong with a run and why: one list, most urgent first. The answer of `tlparse findings`,
// and what every other answer and the page show of it.
//
// A finding is one cause, said once; symptoms of a cause are its evidence. Findings are made from
// rows of the database alone, one launch at a time; of earlier launches one line each says how they
// ended. What a log cannot show is not claimed: no record and no dump names the end of a process,
// and a log that ends inside a compile does not tell whether the process died there or hung.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// In JSON by name; schemas/json/answers/findings.schema.json has the list with a line on each.
enum class FindingKind : std::uint8_t {
  kCompileFailed,
  kStoppedFirst,
  kStuck,
  kMissingRank,
  kLateRank,
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
  kRestarted,
  kLaunchDiffers,
  kImportErrors,
};
inline constexpr std::size_t kFindingKindCount = 26;
std::string_view Name(FindingKind kind);  // "compile_failed"
std::optional<FindingKind> FindingKindOf(std::string_view name);

enum class FindingSeverity : std::uint8_t {
  kError,    // wrong or lost work
  kWarning,  // costs time, or ranks do not do the same
  kNote,     // worth knowing
};
std::string_view Name(FindingSeverity severity);  // "error"
std::optional<FindingSeverity> FindingSeverityOf(std::string_view name);

struct FindingPlace {
  std::string file;
  std::int64_t line = 0;
  std::string code;  // text of the line; empty: not in the log
};

// Strings are empty where there is nothing to say.
struct Finding {
  // Made from kind, function, file, line and the cause without numbers; the same cause in another
  // run has the same id.
  std::string id;
  FindingKind kind = FindingKind::kCompileFailed;
  FindingSeverity severity = FindingSeverity::kNote;
  std::string title;   // one sentence: who, what, where
  std::string detail;  // one or two more
  std::optional<std::int64_t> launch;
  // The ranks in which the cause lies, ascending; empty: all of them, or logs without rank.
  std::vector<std::int64_t> ranks;
  std::size_t rank_count = 0;         // participants concerned
  std::vector<std::string> logs;      // names of participants without rank
  std::vector<std::string> compiles;  // labels
  std::optional<std::int64_t> since_us;
  std::optional<FindingPlace> place;
  std::string cause;
  std::string suggestion;  // what to try; "try" in JSON
  std::vector<Finding> evidence;
  std::string query;  // SQL that gives the rows behind it
  // For the id, beside kind, place and cause.
  std::string function;
};

struct FindingsOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest, and notes on earlier ones
  std::optional<std::int64_t> world_size;  // how many ranks there should be
};

// Bounded in memory by the answers about ranks, whatever the number of ranks. kNotFound: no such
// run or launch.
Result<std::vector<Finding>> FindFindings(Database& database, const FindingsOptions& options);

}  // namespace tlparse
