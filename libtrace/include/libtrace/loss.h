// Records that could not be written, and why. libtrace never fails its host; it counts losses.
//
// Each kind is reported once per process through Options::on_error, and in the log itself: as soon
// as records can be written again, an artifact `libtrace_loss`
// (schemas/json/libtrace/libtrace_loss.schema.json) says what has been lost since the last one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

enum class LossKind {
  kQueueFull,         // asynchronous, and no room
  kWriteFailed,       // disk full, file size limit, I/O error, a sink that threw
  kOpenFailed,        // directory missing, read-only or full
  kBuilderFailed,     // a metadata or payload builder threw, or memory ran out
  kPayloadTooLarge,   // the record is there, without its payload
  kReentrant,         // emitted by a sink in the middle of an emission
  kBadRecordKey,      // reserved or empty record key, or not the members that readers of PyTorch's
                      // record of that name need
  kNotWrittenAtExit,  // still queued when Options::max_exit_delay was over, or emitted by another
                      // thread after the destructors of static objects
  kBadOption,         // not a loss: an option or variable was not understood
  kBadEncoding,       // not a loss: an artifact's encoding was neither json nor string, or its
                      // payload was not JSON; written as string
  kLimited,           // not a loss: left out as Options::limits asks; never reported to on_error
};
inline constexpr int kLossKindCount = 11;

// As in the log: `queue_full`, `write_failed`, …
std::string_view ToString(LossKind kind) noexcept;

// Counters of the running trace, or of the last one if none runs (a forked child starts at 0).
// Reading them never waits.
struct Stats {
  // Handed to the sink without an error, `str` and our own ones included.
  uint64_t record_count = 0;
  uint64_t size_bytes = 0;  // of these
  uint64_t lost_record_count = 0;
  std::array<uint64_t, kLossKindCount> lost_by_kind{};  // indexed by LossKind
  uint64_t repaired_payload_count = 0;                  // bytes that were not UTF-8 became U+FFFD
  uint64_t file_count = 0;                              // opened by this process
};

}  // namespace LIBTRACE_EXPORT
