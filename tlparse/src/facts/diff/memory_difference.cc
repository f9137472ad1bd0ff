#include "facts/diff/memory_difference.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "queries/facts/memory/memory.h"

namespace tlparse {
namespace {

// Kind of the recording, of the device, its number, rank.
using DeviceKey =
    std::tuple<std::string, std::string, std::optional<std::int64_t>, std::optional<std::int64_t>>;
struct Recording {
  std::int64_t snapshot_id = 0, peak_bytes = 0;
};
using Recordings = std::map<DeviceKey, Recording>;

Result<Recordings> ReadRecordings(const MemorySide& side) {
  Recordings recordings;
  FOR_EACH_ROW(const MemoryDeviceRow& row,
               Query<MemoryDeviceRow>(*side.database,
                                      {.run_id = side.run_id, .rank = side.rank, .pid = {}})) {
    const std::optional<std::int64_t> rank = side.rank ? std::nullopt : row.rank;
    const auto [entry, is_new] =
        recordings.try_emplace({std::string(row.kind), std::string(row.source), row.device, rank},
                               Recording{row.id, row.peak_bytes});
    if (row.peak_bytes > entry->second.peak_bytes) entry->second = {row.id, row.peak_bytes};
  }
  return recordings;
}

// A device that is the only one of its side, whatever its rank.
void DropLoneRank(Recordings& a, Recordings& b) {
  if (a.size() != 1 || b.size() != 1) return;
  for (Recordings* const side : {&a, &b}) {
    auto node = side->extract(side->begin());
    std::get<3>(node.key()).reset();
    side->insert(std::move(node));
  }
}

Result<MemoryDevice> ReadDevice(const MemorySide& side, const Recording& recording) {
  MemoryOptions options;
  options.run_id = side.run_id;
  options.snapshot_id = recording.snapshot_id;
  ASSIGN_OR_RETURN(MemoryAnswer answer, Memory(*side.database, options));
  if (answer.devices.empty()) return Fail(ErrorCode::kInternal, "a snapshot has no device");
  return std::move(answer.devices.front());
}

using RowKey =
    std::tuple<std::string, std::int64_t, std::string, std::string, std::string, std::string>;
RowKey KeyOf(const MemoryRow& row) {
  return {row.file, row.line.value_or(-1), row.function, row.label, row.direction, row.reason};
}

// Rows with a line that one side alone has, by function: a line that has moved.
void JoinMovedLines(std::vector<MemoryChange>& changes) {
  struct Only {
    std::vector<std::size_t> a, b;
  };
  std::map<std::pair<std::string, std::string>, Only> functions;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const MemoryChange& change = changes[i];
    if (change.row.file.empty() || (change.a_bytes > 0 && change.b_bytes > 0)) continue;
    Only& only =
        functions[{change.row.file.substr(change.row.file.rfind('/') + 1), change.row.function}];
    (change.a_bytes > 0 ? only.a : only.b).push_back(i);
  }
  for (const auto& [function, only] : functions) {
    if (only.a.size() != 1 || only.b.size() != 1) continue;
    MemoryChange& a = changes[only.a.front()];
    changes[only.b.front()].a_bytes = std::exchange(a.a_bytes, 0);
    changes[only.b.front()].a_line = a.row.line;
  }
  std::erase_if(changes, [](const MemoryChange& one) { return one.a_bytes + one.b_bytes == 0; });
}

std::vector<MemoryChange> ChangesOf(MemoryDevice& a, MemoryDevice& b) {
  std::map<RowKey, MemoryChange> rows;
  for (const bool is_b : {false, true}) {
    for (MemoryRow& row : (is_b ? b : a).rows) {
      MemoryChange& change = rows[KeyOf(row)];
      (is_b ? change.b_bytes : change.a_bytes) += row.size_bytes;
      row.size_bytes = row.allocations = 0;
      row.share = 0;
      change.row = std::move(row);
    }
    (is_b ? b : a).rows.clear();
  }
  std::vector<MemoryChange> changes;
  for (auto& [key, change] : rows) changes.push_back(std::move(change));
  JoinMovedLines(changes);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const MemoryChange& x, const MemoryChange& y) {
                     return x.b_bytes - x.a_bytes > y.b_bytes - y.a_bytes;
                   });
  return changes;
}

}  // namespace

Result<std::optional<MemoryDifference>> CompareMemory(const MemorySide& a, const MemorySide& b) {
  ASSIGN_OR_RETURN(Recordings of_a, ReadRecordings(a));
  ASSIGN_OR_RETURN(Recordings of_b, ReadRecordings(b));
  DropLoneRank(of_a, of_b);
  std::size_t count = 0;
  std::pair<Recording, Recording> most;
  for (const auto& [key, recording] : of_a) {
    const auto other = of_b.find(key);
    if (other == of_b.end()) continue;
    const std::int64_t growth = other->second.peak_bytes - recording.peak_bytes;
    if (count++ == 0 || growth > most.second.peak_bytes - most.first.peak_bytes)
      most = {recording, other->second};
  }
  if (count == 0) return std::optional<MemoryDifference>();
  MemoryDifference difference;
  difference.device_count = count;
  ASSIGN_OR_RETURN(difference.a, ReadDevice(a, most.first));
  ASSIGN_OR_RETURN(difference.b, ReadDevice(b, most.second));
  difference.changes = ChangesOf(difference.a, difference.b);
  return std::optional(std::move(difference));
}

}  // namespace tlparse
