#include "findings/looked_for.h"

#include <array>

namespace tlparse {
namespace {

struct InputInfo {
  std::string_view name, words;
  bool is_of_ranks = true, is_of_trace = false;
  std::string_view profile_kind = {};
};
constexpr std::array<InputInfo, kLookedInputCount> kInputs = {{
    {"trace", "structured trace"},
    {"failure", "record of a failure in the trace", true, true},
    {"cache_lookup", "cache lookup in the trace", true, true},
    {"output_hash", "hash of a graph's outputs (tlparse run --numbers)", true, true},
    {"traceback", "traceback"},
    {"run_record", "run.json", false, false, "run"},
    {"recorder_dump", "recorder dump", true, false, "flight_recorder"},
    {"watchdog", "line of NCCL's watchdog", false},
    {"ras_report", "report of NCCL's RAS", false, false, "nccl_ras"},
    {"profile", "profile"},
    {"memory_snapshot", "memory snapshot", true, false, "memory_snapshot"},
}};

using Input = LookedInput;
constexpr std::array kOwnTrace = {Look{Input::kTrace, false}};
constexpr std::array kCaches = {Look{Input::kTrace, false}, Look{Input::kCacheLookup, false}};
constexpr std::array kFailures = {Look{Input::kFailure, false}, Look{Input::kTraceback, false},
                                  Look{Input::kRunRecord, true}};
constexpr std::array kEnds = {Look{Input::kFailure, false}, Look{Input::kTraceback, false},
                              Look{Input::kRunRecord, true}, Look{Input::kRecorderDump, false},
                              Look{Input::kWatchdog, true}};
constexpr std::array kHangs = {Look{Input::kFailure, false},  Look{Input::kTraceback, false},
                               Look{Input::kRunRecord, true}, Look{Input::kRecorderDump, true},
                               Look{Input::kWatchdog, true},  Look{Input::kRasReport, true}};
constexpr std::array kCollectives = {
    Look{Input::kTrace, false},    Look{Input::kTraceback, false},
    Look{Input::kRunRecord, true}, Look{Input::kRecorderDump, true},
    Look{Input::kWatchdog, true},  Look{Input::kRasReport, true}};
constexpr std::array kMissing = {Look{Input::kTrace, false}, Look{Input::kRecorderDump, false},
                                 Look{Input::kProfile, false}, Look{Input::kTraceback, false},
                                 Look{Input::kRunRecord, true}};
constexpr std::array kWaits = {Look{Input::kTrace, false}, Look{Input::kRecorderDump, true},
                               Look{Input::kProfile, true}};
constexpr std::array kLate = {Look{Input::kTrace, false}, Look{Input::kRecorderDump, true}};
constexpr std::array kEager = {Look{Input::kTrace, false}, Look{Input::kRecorderDump, true}};
constexpr std::array kStarts = {Look{Input::kTrace, false}, Look{Input::kRunRecord, true}};
constexpr std::array kMemory = {Look{Input::kMemorySnapshot, true}, Look{Input::kProfile, true}};
constexpr std::array kNumbers = {Look{Input::kOutputHash, true}};

}  // namespace

std::string_view Name(LookedInput input) { return kInputs[static_cast<std::size_t>(input)].name; }
std::string_view WordsOf(LookedInput input) {
  return kInputs[static_cast<std::size_t>(input)].words;
}
std::string_view ProfileKindOf(LookedInput input) {
  return kInputs[static_cast<std::size_t>(input)].profile_kind;
}
bool IsOfRanks(LookedInput input) { return kInputs[static_cast<std::size_t>(input)].is_of_ranks; }
bool IsOfTrace(LookedInput input) { return kInputs[static_cast<std::size_t>(input)].is_of_trace; }
bool IsOfNccl(LookedInput input) {
  return input == LookedInput::kWatchdog || input == LookedInput::kRasReport;
}

// Without a default: the compiler names a kind that is not declared.
std::span<const Look> LooksOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kImportErrors:
      return {};
    case FindingKind::kAutotuning:
    case FindingKind::kCudaGraphSkipped:
    case FindingKind::kGraphBreak:
    case FindingKind::kNothingCompiled:
    case FindingKind::kPrecompiledAgain:
    case FindingKind::kRecompileLimit:
    case FindingKind::kRecompiles:
    case FindingKind::kSeveralJobs:
    case FindingKind::kExecutionDivergence:
    case FindingKind::kExtraCompile:
    case FindingKind::kGraphBreakDivergence:
    case FindingKind::kGraphDivergence:
    case FindingKind::kInputDivergence:
    case FindingKind::kMissingCompile:
    case FindingKind::kPrecompiledDiffers:
    case FindingKind::kSlowRank:
      return kOwnTrace;
    case FindingKind::kCacheBypassed:
    case FindingKind::kCodeDivergence:
    case FindingKind::kColdCache:
    case FindingKind::kConfigDivergence:
    case FindingKind::kOneKeyTwoCodes:
    case FindingKind::kRemoteCacheError:
      return kCaches;
    case FindingKind::kCompileFailed:
      return kFailures;
    case FindingKind::kCrashed:
    case FindingKind::kStoppedFirst:
      return kEnds;
    case FindingKind::kStuck:
      return kHangs;
    case FindingKind::kCollectiveDivergence:
    case FindingKind::kCollectiveNotReached:
      return kCollectives;
    case FindingKind::kMissingRank:
      return kMissing;
    case FindingKind::kSlowInput:
    case FindingKind::kStraggler:
      return kWaits;
    case FindingKind::kLateRank:
      return kLate;
    case FindingKind::kRunsEagerly:
      return kEager;
    case FindingKind::kLaunchDiffers:
    case FindingKind::kRestarted:
      return kStarts;
    case FindingKind::kMemoryGrowth:
    case FindingKind::kMemoryImbalance:
    case FindingKind::kOutOfMemory:
      return kMemory;
    case FindingKind::kNotFinite:
      return kNumbers;
  }
  return {};
}

}  // namespace tlparse
