#include "facts/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "queries/facts/memory/memory.h"

namespace tlparse {
namespace {

// A stack is known by its row, and what else is known of a site by its texts.
struct SiteFacts {
  std::int64_t stack_id = 0;
  std::string op, annotation;
  bool has_compile = false;
  MemoryRow row;  // without bytes
};

class MemoryFacts {
 public:
  MemoryFacts(Database& database, const MemoryOptions& options)
      : database_(database), options_(options) {}

  Result<MemoryAnswer> Answer();

 private:
  Result<std::optional<MemoryDevice>> DeviceOf(const MemoryDeviceRow& row);
  Result<void> AddRows(MemoryDevice& device);
  Result<SiteFacts> FactsOf(std::int64_t site_id, bool is_before);
  Result<std::vector<std::string>> FramesOf(std::int64_t stack_id);
  MemoryRow RowOf(const SiteFacts& site) const;

  Database& database_;
  const MemoryOptions& options_;
};

Result<SiteFacts> MemoryFacts::FactsOf(std::int64_t site_id, bool is_before) {
  SiteFacts facts;
  facts.row.category = "unknown";
  if (site_id == 0) {
    facts.row.reason = is_before ? "allocated before the recording began" : "no stack was recorded";
    return facts;
  }
  ASSIGN_OR_RETURN(const FirstRow<SiteOfMemory> site,
                   First(KeptQuery<SiteOfMemory>(database_, {.site_id = site_id})));
  if (!site) return facts;
  facts.stack_id = site->stack_id;
  facts.op = site->op;
  facts.annotation = site->annotation;
  MemoryRow& row = facts.row;
  row.category = site->category;
  row.file = site->file;
  if (!row.file.empty()) row.line = site->line;
  row.function = site->function;
  row.label = site->label;
  facts.has_compile = !row.label.empty();
  row.direction = site->direction;
  row.reason = site->join_note;
  return facts;
}

Result<std::vector<std::string>> MemoryFacts::FramesOf(std::int64_t stack_id) {
  std::vector<std::string> frames;
  if (stack_id == 0) return frames;
  FOR_EACH_ROW(const FrameOfMemory& frame,
               KeptQuery<FrameOfMemory>(database_, {.stack_id = stack_id})) {
    frames.push_back(frame.file.empty() || frame.file == "??"
                         ? std::string(frame.function)
                         : fmt::format("{}:{} {}", frame.file, frame.line, frame.function));
  }
  return frames;
}

// What the row of the answer names of a site; rows that are equal are one.
MemoryRow MemoryFacts::RowOf(const SiteFacts& site) const {
  MemoryRow row;
  const MemoryRow& of = site.row;
  switch (options_.by) {
    case MemoryBy::kLine:
      row.file = of.file;
      row.line = of.line;
      row.function = of.function;
      if (!of.file.empty()) break;
      // The next best: the graph, or what was open.
      row.label = of.label;
      row.direction = of.direction;
      if (of.label.empty()) {
        row.reason = of.reason;
        if (!site.op.empty()) row.reason = fmt::format("{}: {}", site.op, of.reason);
      } else {
        row.reason = "no line of its Python code is known";
      }
      break;
    case MemoryBy::kGraph:
      row.label = of.label;
      row.direction = of.direction;
      if (of.label.empty()) row.reason = of.reason;
      break;
    case MemoryBy::kCategory:
      row.category = of.category;
      break;
    case MemoryBy::kStack:
      row.file = of.file;
      row.line = of.line;
      row.function = of.function;
      if (site.stack_id != 0) break;
      row.label = of.label;
      row.direction = of.direction;
      row.reason = of.label.empty() ? of.reason : "the file holds no stacks";
      if (!site.op.empty()) row.reason = fmt::format("{}: {}", site.op, row.reason);
      break;
  }
  return row;
}

Result<void> MemoryFacts::AddRows(MemoryDevice& device) {
  struct Group {
    MemoryRow row;
    std::string category;
    std::int64_t stack_id = 0;
  };
  using Key = std::tuple<std::string, std::int64_t, std::string, std::string, std::string,
                         std::string, std::string, std::int64_t>;
  std::map<Key, Group> groups;
  FOR_EACH_ROW(const HeldBySite& held,
               Query<HeldBySite>(database_,
                                 {.snapshot_id = device.snapshot_id, .ordinal = device.ordinal})) {
    ASSIGN_OR_RETURN(const SiteFacts site, FactsOf(held.site_id, held.is_before));
    const bool has_line = !site.row.file.empty();
    device.alive_bytes += held.size_bytes;
    if (has_line) device.line_bytes += held.size_bytes;
    if (site.has_compile) device.graph_bytes += held.size_bytes;
    if (has_line || site.has_compile) device.named_bytes += held.size_bytes;
    MemoryRow row = RowOf(site);
    const std::int64_t stack = options_.by == MemoryBy::kStack ? site.stack_id : 0;
    const auto [entry, is_new] =
        groups.try_emplace({row.file, row.line.value_or(-1), row.function, row.label, row.direction,
                            row.category, row.reason, stack},
                           Group{row, site.row.category, stack});
    Group& group = entry->second;
    if (group.category != site.row.category) group.category.clear();
    group.row.size_bytes += held.size_bytes;
    group.row.allocations += held.allocations;
  }
  for (auto& [key, group] : groups) {
    group.row.category = group.category;
    group.row.share = device.alive_bytes == 0 ? 0
                                              : static_cast<double>(group.row.size_bytes) /
                                                    static_cast<double>(device.alive_bytes);
    ASSIGN_OR_RETURN(group.row.frames, FramesOf(group.stack_id));
    device.rows.push_back(std::move(group.row));
  }
  std::stable_sort(
      device.rows.begin(), device.rows.end(),
      [](const MemoryRow& a, const MemoryRow& b) { return a.size_bytes > b.size_bytes; });
  return {};
}

Result<std::optional<MemoryDevice>> MemoryFacts::DeviceOf(const MemoryDeviceRow& row) {
  MemoryDevice device;
  device.snapshot_id = row.id;
  device.path = row.path;
  device.kind = row.kind;
  device.source = row.source;
  device.device = row.device;
  device.rank = row.rank;
  device.event_count = row.event_count;
  device.base_bytes = row.base_bytes;
  device.peak_bytes = row.peak_bytes;
  device.end_bytes = row.end_bytes;
  const std::optional<std::int64_t> oom_ordinal = row.oom_ordinal;
  const std::optional<std::int64_t> end_reserved = row.end_reserved_bytes;
  switch (options_.at) {
    case MemoryAt::kPeak:
      device.ordinal = row.peak_ordinal;
      device.time_us = row.peak_us;
      device.reserved_bytes = row.reserved_at_peak_bytes;
      break;
    case MemoryAt::kOom:
      if (!oom_ordinal) return std::optional<MemoryDevice>();
      device.ordinal = *oom_ordinal;
      break;
    case MemoryAt::kEnd:
      device.ordinal = row.event_count - 1;
      device.time_us = row.taken_us;
      device.reserved_bytes = end_reserved;
      break;
  }
  RETURN_IF_ERROR(AddRows(device));
  if (end_reserved) {
    ASSIGN_OR_RETURN(
        const FirstRow<SegmentsOfMemory> held,
        First(Query<SegmentsOfMemory>(database_, {.snapshot_id = device.snapshot_id})));
    device.segments = MemorySegments{
        held->reserved_bytes, held->requested_bytes,  held->active_bytes - held->requested_bytes,
        held->free_bytes,     held->fragmented_bytes, held->largest_free_bytes};
  }
  if (oom_ordinal) {
    ASSIGN_OR_RETURN(const FirstRow<FailedAllocationRow> failed,
                     First(Query<FailedAllocationRow>(
                         database_, {.snapshot_id = device.snapshot_id, .ordinal = *oom_ordinal})));
    if (failed)
      device.failed = FailedAllocation{
          failed->size_bytes,        failed->device_free_bytes,     failed->time_us,
          std::string(failed->file), std::string(failed->function), failed->line};
    if (failed && options_.at == MemoryAt::kOom) device.time_us = failed->time_us;
  }
  return std::optional(std::move(device));
}

Result<MemoryAnswer> MemoryFacts::Answer() {
  MemoryAnswer answer;
  bool has_any = false;
  FOR_EACH_ROW(
      const MemoryDeviceRow& row,
      Query<MemoryDeviceRow>(database_, {.run_id = options_.run_id, .rank = options_.rank})) {
    has_any = true;
    ASSIGN_OR_RETURN(std::optional<MemoryDevice> device, DeviceOf(row));
    if (device) answer.devices.push_back(std::move(*device));
  }
  if (!has_any)
    return Fail(ErrorCode::kNotFound,
                fmt::format("the run has no snapshot of the allocator and no profile with memory "
                            "events{}: torch.cuda.memory._dump_snapshot() writes the one, "
                            "torch.profiler with profile_memory=True the other",
                            options_.rank ? fmt::format(" of rank {}", *options_.rank) : ""));
  if (answer.devices.empty())
    answer.notes.push_back("no allocation failed while these snapshots were recorded");
  return answer;
}

}  // namespace

Result<MemoryAnswer> Memory(Database& database, const MemoryOptions& options) {
  return MemoryFacts(database, options).Answer();
}

}  // namespace tlparse
