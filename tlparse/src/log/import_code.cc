#include "log/import_code.h"

namespace tlparse {

namespace {

constexpr Severity kE = Severity::kError;
constexpr Severity kW = Severity::kWarning;
constexpr Severity kI = Severity::kInfo;
constexpr Harm kDamage = Harm::kDamage, kCut = Harm::kCut;
using C = ImportCode;

constexpr ImportCodeInfo kInfos[] = {
    {C::kBrokenHeader, kE, "broken_header",
     "The line was the header of a record but is damaged: bytes were changed, the log was cut "
     "off or two writers shared the file. The record is lost; the text is kept here."},
    {C::kPayloadMismatch, kE, "payload_mismatch",
     "The payload's bytes do not have the MD5 that the record names: it was edited, cut or "
     "mixed with other lines. Compare with the original log."},
    {C::kPayloadMissing, kE, "payload_missing",
     "The record names a payload, but no payload lines follow it: the log was cut off or "
     "filtered."},
    {C::kPayloadWithoutRecord, kE, "payload_without_record",
     "Payload lines follow no record: their record was lost. The text is kept here."},
    {C::kPayloadTruncated, kE, "payload_truncated",
     "The log ends inside this payload: the disk was full, or the file was copied while the job "
     "ran. Copy it again.",
     kCut},
    {C::kDamagedInput, kE, "damaged_input",
     "The compressed file is cut or damaged; what could be decoded was read. Copy it again.", kCut},
    {C::kLineTooLong, kE, "line_too_long",
     "A record is longer than 768 MiB: it was cut there, and what follows is kept as text of "
     "import_log."},
    {C::kNoRecordKey, kW, "no_record_key",
     "The envelope has no member that names its kind; it is kept with kind NULL."},
    {C::kSeveralRecordKeys, kW, "several_record_keys",
     "The envelope has several members that could name its kind, and none or several of them "
     "are known; it is kept with kind NULL."},
    {C::kBadEnvelopeMember, kW, "bad_envelope_member",
     "A member of the envelope has a wrong type; its value is in record.envelope."},
    {C::kUnknownRecordKind, kI, "unknown_record_kind",
     "This tlparse does not know the kind; it is kept whole and can be queried by record.kind."},
    {C::kUnknownArtifact, kI, "unknown_artifact",
     "This tlparse does not know the artifact; it is kept whole and can be queried by "
     "record.name."},
    {C::kBadMetadata, kW, "bad_metadata",
     "The record's metadata does not have the form of its kind; no typed row was made from it."},
    {C::kBadPayload, kW, "bad_payload",
     "The payload does not have the form of its kind; it is kept, but typed rows are missing or "
     "incomplete."},
    {C::kPayloadTooLarge, kW, "payload_too_large",
     "The record is larger than what is typed: JSON of more than 32 MiB, a payload or an "
     "envelope of more than a million values, guards of more than 300,000 lines, code of too "
     "many kernels. It is kept; the message says which rows were left out."},
    {C::kUnresolvedString, kW, "unresolved_string",
     "A stack names an interned string that this process's log does not define (forked child, "
     "or tracing began late); shown as <unknown:id>."},
    {C::kRedefinedString, kW, "redefined_string",
     "An interned string id was defined twice with different texts: several processes share one "
     "pid in this file. The later one counts from here on."},
    {C::kUnresolvedCompile, kW, "unresolved_compile",
     "The record points to a compile that is not in this log."},
    {C::kOpenEvent, kW, "open_event",
     "A timed event was begun and never ended: the process died, or the compile failed and "
     "reset its events."},
    {C::kOrphanEvent, kW, "orphan_event", "A timed event ended that was never begun in this log."},
    {C::kForeignLine, kI, "foreign_line",
     "These lines are not part of the structured trace (another log was mixed in). The text is "
     "kept here."},
    {C::kSkippedFile, kI, "skipped_file", "The file is not a structured trace and was left out."},
    {C::kUncalibratedTime, kW, "uncalibrated_time",
     "The year and zone of the prefix times are unknown; record.time_us is NULL for this process."},
    {C::kTimeFromFile, kI, "time_from_file",
     "No record gives the year or zone: the year was taken from the file's modification time, "
     "and the zone was assumed to be UTC."},
    {C::kUnnamedArtifact, kI, "unnamed_artifact",
     "An artifact without a name (the partitioner of PyTorch 2.6 writes them); kept with name "
     "NULL."},
    {C::kCrRemoved, kI, "cr_removed",
     "Line ends of this file were changed to CR LF on the way; payloads are correct without the "
     "CR."},
    {C::kRepairedJson, kI, "repaired_json",
     "The JSON held NaN, Infinity, lone surrogates or repeated members; record.metadata has the "
     "strict form, record.envelope the original."},
    {C::kUnhashedPayload, kW, "unhashed_payload",
     "Payload lines follow a record that names no payload: the record they belong to was lost, "
     "or has_payload was changed. They are kept with this record but cannot be verified.",
     kDamage},
    {C::kRankConflict, kW, "rank_conflict",
     "Records of one process name different ranks; each rank got a process row of its own."},
    {C::kAssumedUnit, kI, "assumed_unit",
     "The log does not say its unit reliably; op_runtime.assumed_unit is the unit that was "
     "assumed."},
    {C::kBadPayloadHash, kW, "bad_payload_hash",
     "has_payload is not an MD5; the payload is kept but cannot be verified.", kDamage},
    {C::kImpossibleTime, kW, "impossible_time",
     "The record's prefix names a date or time of day that does not exist, and it got the time "
     "of the record before it (the first ones: of the one after); or its time contradicts those "
     "of the records around it, and it kept that time."},
    {C::kAssumedState, kI, "assumed_state",
     "A cache artifact of early 2024 names the key but not how the lookup ended; it counts as a "
     "miss."},
    {C::kRecordsLost, kW, "records_lost",
     "The log is incomplete: libtrace counted records that it could not write (trace_loss says "
     "why and when, lost_record which). queue_full: set LIBTRACE_ASYNC=block or a larger "
     "LIBTRACE_QUEUE_BYTES; write_failed, open_failed: the disk was full, or the directory not "
     "writable."},
    {C::kRecordsLimited, kI, "records_limited",
     "The program writes only some of its records of a kind (libtrace's Options::limits, "
     "LIBTRACE_LIMITS): counts of these are counts of what was written. lost_record says which."},
    {C::kCutProfile, kE, "cut_profile",
     "The profile or recorder dump ends in the middle of its events, or is empty: the process died "
     "while it wrote, the disk was full, or the file was copied too early. What came before was "
     "read. Copy it again.",
     kCut},
    {C::kBadProfileEvent, kE, "bad_profile_event",
     "An event of the profile is not valid JSON, lacks a name, or has no possible time; it was "
     "left out, of a flight recorder's entry its time alone. A slice without a duration is kept "
     "with the duration 0. The text is kept here."},
    {C::kProfileEventTooLarge, kE, "profile_event_too_large",
     "An event of the profile is larger than 16 MiB; it was left out."},
    {C::kUnknownProfileEvent, kI, "unknown_profile_event",
     "This tlparse does not know the category. Its events were left out, but for those that the "
     "message calls work of a device."},
    {C::kProfileEventsLeftOut, kI, "profile_events_left_out",
     "These events are not about compiled code, or repeat others; they were counted and left "
     "out. --keep-python-frames keeps Python frames."},
    {C::kAssumedClock, kI, "assumed_clock",
     "The profile does not say when its clock began (before mid-2024): its times were taken for "
     "microseconds since the epoch."},
    {C::kUnmatchedProfile, kI, "unmatched_profile",
     "No log of this run belongs to the process that was profiled; profile.process_note says "
     "what was looked for. The log can be added later with --db FILE --run NAME."},
    {C::kOverlappingProfiles, kI, "overlapping_profiles",
     "Two profiles of one process measured the same time; 'tlparse cost' counts the first only."},
    {C::kUnknownEnvelopeMember, kI, "unknown_envelope_member",
     "The envelope has a member other than its record key that this version does not know; its "
     "value is in record.envelope."},
    {C::kBadRank, kW, "bad_rank",
     "The record names a rank that no job has (below 0 or above 1,048,575): it counts as a "
     "record without a rank. What it named is in record.envelope."},
    {C::kMemoryLimit, kW, "memory_limit",
     "More than the memory limit allows was open at once, so that the oldest was treated as "
     "complete, or a process interned too many strings, so that the later ones do not appear in "
     "stacks. The records are kept; rows derived from them may be incomplete."},
    {C::kLeftoverKernels, kI, "leftover_kernels",
     "PyTorch 2.14 repeats kernels of earlier graphs among the stack traces of a later one, "
     "whose code does not call them: they are in leftover_kernel, not in kernel."},
    {C::kBadRuntimeFile, kE, "bad_runtime_file",
     "The dump, package or export is damaged, or does not have the form of its kind; the "
     "readable part was kept. Compare with the original file.",
     kCut},
    {C::kRefusedPickle, kE, "refused_pickle",
     "The pickle holds more than plain values. Nothing of it was executed; what came before was "
     "read. Do not unpickle the file by other means unless you trust its source.",
     kCut},
    {C::kUnknownRank, kI, "unknown_rank",
     "The rank that wrote the file is unknown. Give it a name that ends in _rank_<N>."},
    {C::kAssumedFormat, kI, "assumed_format",
     "The file names a version of its format that this tlparse does not know; it was read like "
     "the nearest known one."},
    {C::kRemovedFile, kI, "removed_file",
     "The log was removed while 'tlparse watch' followed it. The rows of what was read stay."},
    {C::kLogWithoutRecords, kW, "log_without_records",
     "The log holds no record, so nothing is known of what its process did. Look at what the "
     "process printed, and whether the file was copied whole."},
    {C::kDamagedHeader, kW, "damaged_header",
     "The header can be read, but a byte of it was changed: what the record says may be wrong. "
     "Compare with the original log.",
     kDamage},
    {C::kStrayRecord, kW, "stray_record",
     "No other record names this process, rank or compile: the number was probably changed. The "
     "record is kept, but not compared with other ranks. Compare with the original log.",
     kDamage},
    {C::kMissingMetrics, kW, "missing_metrics",
     "The compile ended, but its compilation_metrics are not in the log: the record was lost. "
     "How long the compile took is unknown, and so is an exception that only the metrics name.",
     kDamage},
    {C::kUnrecordedSegments, kI, "unrecorded_segments",
     "The snapshot's events do not hold all segments that the allocator took and gave back "
     "(_record_memory_history can leave out actions: skip_actions): what it held at the peak "
     "is unknown. Blocks and their bytes do not depend on it."},
    {C::kBinaryNoise, kE, "binary_noise",
     "Bytes that no program prints stand between the records: the file was damaged on its disk or "
     "on the way. The records that stood there are lost, and their number is not known. The bytes "
     "are kept here."},
    {C::kUnreadInput, kE, "unread_input",
     "The file or directory could not be opened, so what it holds is unknown. Give this user the "
     "right to read it, and ingest again."},
};
static_assert(sizeof kInfos / sizeof kInfos[0] + 1 == static_cast<std::size_t>(C::kCount));

constexpr bool InOrder() {
  std::size_t expected = 1;
  for (const ImportCodeInfo& info : kInfos) {
    if (static_cast<std::size_t>(info.code) != expected++) return false;
  }
  return true;
}
static_assert(InOrder(), "kInfos is in the order of ImportCode");

}  // namespace

const ImportCodeInfo& Info(ImportCode code) { return kInfos[static_cast<std::size_t>(code) - 1]; }

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      break;
  }
  return "info";
}

}  // namespace tlparse
