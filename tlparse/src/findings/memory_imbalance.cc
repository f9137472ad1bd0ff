// A rank that holds more memory at its peak than the others that do the same work.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/human_bytes.h"
#include "base/plural.h"
#include "facts/memory/memory.h"
#include "findings/context.h"

namespace tlparse {
namespace {

constexpr std::size_t kFewestRanks = 3;
// The gap to the next rank, as a share of what that one holds and in spreads of all the others.
constexpr double kLeastGap = 0.1;
constexpr std::int64_t kLeastSpreads = 3;

// Memory of the CPU and of a device are not compared, and neither are a snapshot and a profile.
using Kind = std::pair<std::string, bool>;  // and whether it is of a device
// The recordings with the highest peaks, one a rank.
using Peaks = std::map<std::int64_t, const MemoryDevice*>;

std::map<Kind, Peaks> PeaksByKind(const FindingContext& context, const MemoryAnswer& answer) {
  const std::vector<RankIndex> members = context.All();
  std::map<Kind, Peaks> peaks;
  for (const MemoryDevice& device : answer.devices) {
    const bool is_member =
        members.empty() || std::any_of(members.begin(), members.end(), [&](RankIndex one) {
          return context.job.participants()[static_cast<std::size_t>(one)].rank == device.rank;
        });
    if (!device.rank || !is_member || !IsOfLaunch(context, device.time_us)) continue;
    const MemoryDevice*& highest = peaks[{device.kind, device.device.has_value()}][*device.rank];
    if (highest == nullptr || device.peak_bytes > highest->peak_bytes) highest = &device;
  }
  return peaks;
}

std::int64_t BytesLike(const MemoryDevice& device, const MemoryRow& row) {
  std::int64_t bytes = 0;
  for (const MemoryRow& one : device.rows) {
    if (one.file == row.file && one.line == row.line && one.function == row.function &&
        one.label == row.label && one.category == row.category)
      bytes += one.size_bytes;
  }
  return bytes;
}

// What of a rank's peak the others hold less of, and by how much.
struct Extra {
  const MemoryRow* row = nullptr;
  std::int64_t bytes = 0;
};

// The largest first; those that are little beside it are left out.
std::vector<Extra> ExtrasOf(const MemoryDevice& device,
                            const std::vector<const MemoryDevice*>& others) {
  std::vector<Extra> extras;
  for (const MemoryRow& row : device.rows) {
    std::int64_t most = 0;
    for (const MemoryDevice* const other : others) most = std::max(most, BytesLike(*other, row));
    if (row.size_bytes > most) extras.push_back({&row, row.size_bytes - most});
  }
  std::stable_sort(extras.begin(), extras.end(),
                   [](const Extra& a, const Extra& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kMostExtras = 3;
  constexpr std::int64_t kLeastPart = 10;  // of the largest
  std::size_t count = 0;
  while (count < std::min(kMostExtras, extras.size()) &&
         extras[count].bytes >= extras.front().bytes / kLeastPart)
    ++count;
  extras.resize(count);
  return extras;
}

// "6.3 MB of train.py:17 (other) and 4.7 MB of train.py:15 (other) are alive then, together 11.0 MB
// more than at the peak of any other. "
std::string ExtrasText(const std::vector<Extra>& extras) {
  std::string text;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < extras.size(); ++i) {
    text += i == 0 ? "" : i + 1 == extras.size() ? " and " : ", ";
    text += HolderText(*extras[i].row);
    bytes += extras[i].bytes;
  }
  return fmt::format("{} are alive then, {}{} more than at the peak of any other. ", text,
                     extras.size() > 1 ? "together " : "", HumanBytes(bytes));
}

void AddImbalance(FindingContext& context, const MemoryDevice& device,
                  const std::vector<const MemoryDevice*>& others) {
  std::vector<std::int64_t> ranks;
  std::string ids = std::to_string(device.snapshot_id);
  std::int64_t least_events = device.event_count, most_events = device.event_count;
  for (const MemoryDevice* const other : others) {
    ranks.push_back(*other->rank);
    ids += fmt::format(", {}", other->snapshot_id);
    least_events = std::min(least_events, other->event_count);
    most_events = std::max(most_events, other->event_count);
  }
  const std::int64_t next = others.front()->peak_bytes;
  std::sort(ranks.begin(), ranks.end());
  Finding& finding = context.Add(FindingKind::kMemoryImbalance, FindingSeverity::kNote);
  finding.ranks = {*device.rank};
  finding.rank_count = 1;
  finding.cause = "holds more memory";
  finding.since_us = device.time_us;
  finding.title = fmt::format("Rank {} holds {} at its peak{}, ranks {} at most {}", *device.rank,
                              HumanBytes(device.peak_bytes),
                              device.device             ? ""
                              : device.kind == "kineto" ? " on the CPU"
                                                        : " of pinned memory",
                              FormatRankRanges(ranks), HumanBytes(next));
  if (const std::vector<Extra> extras = ExtrasOf(device, others); !extras.empty()) {
    finding.detail = ExtrasText(extras);
    const MemoryRow& row = *extras.front().row;
    if (!row.file.empty()) finding.place = FindingPlace{row.file, row.line.value_or(0), {}};
    finding.function = row.function;
  }
  finding.detail += fmt::format(
      "Each peak is that of the rank's own recording, of {}: what was not recorded may have "
      "been higher.",
      least_events == most_events ? Count(least_events, "event")
                                  : fmt::format("{} to {} events", least_events, most_events));
  finding.suggestion = fmt::format(
      "compare 'tlparse memory --rank {}' with 'tlparse memory --rank {}': the first rank that "
      "runs "
      "out of memory is this one",
      *device.rank, ranks.front());
  finding.query = fmt::format(
      "SELECT id, path, rank, device, event_count, peak_bytes FROM memory_snapshot "
      "WHERE id IN ({})",
      ids);
}

}  // namespace

Result<void> FindMemoryImbalance(FindingContext& context) {
  const Result<MemoryAnswer> answer =
      Memory(context.database, {.run_id = context.job.run_id(), .asked = {}});
  if (!answer) {
    if (answer.error().code == ErrorCode::kNotFound) return {};
    return tl::unexpected<Error>(answer.error());
  }
  for (const auto& [kind, peaks] : PeaksByKind(context, *answer)) {
    if (peaks.size() < kFewestRanks) continue;
    std::vector<const MemoryDevice*> devices;
    for (const auto& [rank, device] : peaks) devices.push_back(device);
    std::stable_sort(
        devices.begin(), devices.end(),
        [](const MemoryDevice* a, const MemoryDevice* b) { return a->peak_bytes > b->peak_bytes; });
    const std::int64_t next = devices[1]->peak_bytes;
    const std::int64_t gap = devices[0]->peak_bytes - next;
    const std::int64_t spread = next - devices.back()->peak_bytes;
    if (static_cast<double>(gap) > kLeastGap * static_cast<double>(next) &&
        gap > kLeastSpreads * spread)
      AddImbalance(context, *devices[0], {devices.begin() + 1, devices.end()});
  }
  return {};
}

}  // namespace tlparse
