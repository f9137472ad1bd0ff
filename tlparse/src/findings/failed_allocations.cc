// Allocations of a device that failed, by snapshots of its allocator.
#include <fmt/format.h>

#include <algorithm>

#include "base/human_bytes.h"
#include "base/plural.h"
#include "facts/memory/memory.h"
#include "findings/context.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostHolders = 3;

// "5.2 MB were alive, the most by 3.5 MB of model.py:30 (forward), …"
std::string HoldersText(const MemoryDevice& device) {
  std::string text = fmt::format("{} were alive", HumanBytes(device.alive_bytes));
  for (std::size_t i = 0; i < std::min(kMostHolders, device.rows.size()); ++i)
    text += fmt::format("{} {}", i == 0 ? ":" : ",", HolderText(device.rows[i]));
  if (device.rows.size() > kMostHolders)
    text += fmt::format(", and {} more", device.rows.size() - kMostHolders);
  return text + '.';
}

// What the allocator and the device had unused would do, if it were in one piece.
bool IsFragmented(const MemoryDevice& device) {
  const MemorySegments& segments = *device.segments;
  const std::int64_t size = device.failed->size_bytes;
  return segments.largest_free_bytes < size &&
         segments.fragmented_bytes + segments.free_bytes +
                 device.failed->device_free_bytes.value_or(0) >=
             size;
}

void AddFailedAllocation(FindingContext& context, const MemoryDevice& device) {
  const FailedAllocation& failed = *device.failed;
  // The last event: the segments are those of that moment.
  const bool is_last = device.ordinal + 1 == device.event_count;
  Finding& finding = context.Add(FindingKind::kOutOfMemory,
                                 is_last ? FindingSeverity::kError : FindingSeverity::kWarning);
  finding.rank_count = 1;
  if (device.rank) finding.ranks = {*device.rank};
  if (!failed.file.empty()) finding.place = FindingPlace{failed.file, failed.line.value_or(0), {}};
  finding.function = failed.function;
  finding.cause = "allocation failed";
  finding.since_us = failed.time_us;
  finding.title = fmt::format("An allocation of {} failed{}{}{}", HumanBytes(failed.size_bytes),
                              device.device ? fmt::format(" on device {}", *device.device) : "",
                              device.rank ? fmt::format(" of rank {}", *device.rank) : "",
                              finding.place ? " at " + PlaceText(*finding.place) : "");
  finding.detail = HoldersText(device);
  if (failed.device_free_bytes)
    finding.detail +=
        fmt::format(" The device had {} free.", HumanBytes(*failed.device_free_bytes));
  if (!is_last)
    finding.detail += fmt::format(" {} follow{}: the program continued.",
                                  Count(device.event_count - device.ordinal - 1, "event"),
                                  VerbS(device.event_count - device.ordinal - 1));
  finding.suggestion =
      "free or shrink what 'tlparse memory --at oom --by stack' names first, or make the batch "
      "smaller";
  if (is_last && device.segments) {
    const MemorySegments& segments = *device.segments;
    finding.detail += fmt::format(
        " The allocator held {}, {} of it unused, at most {} in one piece{}.",
        HumanBytes(segments.reserved_bytes),
        HumanBytes(segments.fragmented_bytes + segments.free_bytes),
        HumanBytes(segments.largest_free_bytes),
        IsFragmented(device) ? ": with what the device had free enough, but not in one piece" : "");
    if (IsFragmented(device)) {
      finding.changes = {{.kind = ChangeKind::kVariable,
                          .name = "PYTORCH_CUDA_ALLOC_CONF",
                          .value = "expandable_segments:True",
                          .function = {},
                          .file = {}}};
      finding.suggestion =
          fmt::format("set {}: segments then grow instead of being cut", TextOf(finding.changes));
    }
  }
  finding.query = fmt::format(
      "SELECT * FROM memory_event WHERE snapshot_id = {} AND action = 'oom'", device.snapshot_id);
}

}  // namespace

bool IsOfLaunch(const FindingContext& context, std::optional<std::int64_t> time_us) {
  if (context.launches.size() < 2) return true;
  std::int64_t ordinal = 0, latest_us = -1;
  for (const Launch& launch : context.launches) {
    const std::int64_t start_us = launch.start_us.value_or(0);
    if (start_us <= time_us.value_or(0) && start_us > latest_us) {
      ordinal = launch.ordinal;
      latest_us = start_us;
    }
  }
  return ordinal == context.job.launch();
}

Result<void> FindFailedAllocations(FindingContext& context) {
  const Result<MemoryAnswer> answer = Memory(
      context.database,
      {.run_id = context.job.run_id(), .by = MemoryBy::kLine, .at = MemoryAt::kOom, .asked = {}});
  if (!answer) {
    if (answer.error().code == ErrorCode::kNotFound) return {};
    return tl::unexpected<Error>(answer.error());
  }
  for (const MemoryDevice& device : answer->devices) {
    if (device.failed && IsOfLaunch(context, device.failed->time_us))
      AddFailedAllocation(context, device);
  }
  return {};
}

}  // namespace tlparse
