// Which inputs a kind of finding looks at for its claim: declared once a kind. What of them a run
// has, and what it lacks, is derived of the database (answers/evidence/looked_for.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "facts/finding_kind.h"

namespace tlparse {

enum class LookedInput : std::uint8_t {
  kTrace,
  kFailure,
  kCacheLookup,
  kOutputHash,
  kTraceback,
  kRunRecord,
  kRecorderDump,
  kWatchdog,
  kRasReport,
  kProfile,
  kMemorySnapshot,
};
inline constexpr std::size_t kLookedInputCount = 11;

// "recorder_dump"
std::string_view Name(LookedInput input);
// "recorder dump"
std::string_view WordsOf(LookedInput input);
// profile_kind of such files; empty: those of several kinds, or none are.
std::string_view ProfileKindOf(LookedInput input);
// False: it is one of the whole job.
bool IsOfRanks(LookedInput input);
// A record of a trace: where that is damaged the record may be lost.
bool IsOfTrace(LookedInput input);
bool IsOfNccl(LookedInput input);

struct Look {
  LookedInput input;
  bool is_of_all;  // of all ranks, not of the finding's alone
};
// Empty: the inputs themselves are what is wrong.
std::span<const Look> LooksOf(FindingKind kind);

// Of whom an input was found, of whom not, and of whom that is not known, as the file is damaged or
// cannot be read: "0,1,3", "log:worker_2", of the whole job "job"; empty: of none.
struct LookedFor {
  LookedInput input = LookedInput::kTrace;
  std::string found, not_found, not_known;
  bool is_of_all = false;  // not_found: of all of the job
};

}  // namespace tlparse
