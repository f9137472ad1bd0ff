// What went wrong while a log was read: one row per problem, never an abort.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

enum class Severity : std::uint8_t {
  kError,    // bytes are damaged or belong to nothing
  kWarning,  // content contradicts itself, or is missing by what the log says
  kInfo,     // new or foreign
};

// Every problem has a code with advice for people; ids are stored, so new codes go at the end.
enum class ImportCode : std::uint8_t {
  kBrokenHeader = 1,
  kPayloadMismatch,
  kPayloadMissing,
  kPayloadWithoutRecord,
  kPayloadTruncated,
  kDamagedInput,
  kLineTooLong,
  kNoRecordKey,
  kSeveralRecordKeys,
  kBadEnvelopeMember,
  kUnknownRecordKind,
  kUnknownArtifact,
  kBadMetadata,
  kBadPayload,
  kPayloadTooLarge,
  kUnresolvedString,
  kRedefinedString,
  kUnresolvedCompile,
  kOpenEvent,
  kOrphanEvent,
  kForeignLine,
  kSkippedFile,
  kUncalibratedTime,
  kTimeFromFile,
  kUnnamedArtifact,
  kCrRemoved,
  kRepairedJson,
  kUnhashedPayload,
  kRankConflict,
  kAssumedUnit,
  kBadPayloadHash,
  kImpossibleTime,
  kAssumedState,
  kRecordsLost,
  kRecordsLimited,
  kCutProfile,
  kBadProfileEvent,
  kProfileEventTooLarge,
  kUnknownProfileEvent,
  kProfileEventsLeftOut,
  kAssumedClock,
  kUnmatchedProfile,
  kOverlappingProfiles,
  kUnknownEnvelopeMember,
  kBadRank,
  kMemoryLimit,
  kLeftoverKernels,
  kBadRuntimeFile,
  kRefusedPickle,
  kUnknownRank,
  kAssumedFormat,
  kRemovedFile,
  kLogWithoutRecords,
  kDamagedHeader,
  kStrayRecord,
  kMissingMetrics,
  kUnrecordedSegments,
  kBinaryNoise,
  kUnreadInput,
  kCount
};

// What a problem says of the input. kDamage: a record or more was lost or changed, or what a file
// holds is unknown, as errors say. kCut: and the data of the file end there.
enum class Harm : std::uint8_t { kNone, kDamage, kCut };

struct ImportCodeInfo {
  ImportCode code;
  Severity severity;
  std::string_view name;
  std::string_view advice;
  Harm harm = severity == Severity::kError ? Harm::kDamage : Harm::kNone;
};
const ImportCodeInfo& Info(ImportCode code);
std::string_view Name(Severity severity);

// Where a problem is. Members that are not known stay empty.
struct ImportPlace {
  std::optional<std::int64_t> record_id = {};
  std::optional<std::int64_t> line = {};
  std::optional<std::int64_t> byte_offset = {};
  std::optional<std::int64_t> profile_id = {};  // of a file that is no log
  std::string_view path = {};                   // of a file that was left out
};

}  // namespace tlparse
