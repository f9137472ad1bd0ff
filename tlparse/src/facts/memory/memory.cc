#include "facts/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "facts/memory/after_peak.h"
#include "queries/facts/memory/memory.h"
#include "queries/facts/memory/steps.h"

namespace tlparse {
namespace {

// A stack is known by its row, and what else is known of a site by its texts.
struct SiteFacts {
  std::int64_t stack_id = 0;
  std::string op, annotation, no_node;  // no_node: why no graph node is known
  bool has_compile = false;
  MemoryRow row;  // without bytes
};

// Why it has no node, though it has a compile.
std::string NoNode(const SiteOfMemory& site) {
  if (!site.graph_id) return "which graph of the compile is not known";
  if (!site.code_line) return "the line of its generated code is not known";
  if (site.kernel.empty())
    return fmt::format("line {} of its generated code makes a tensor of no known kernel",
                       *site.code_line);
  return "the log has no nodes of this kernel";
}

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
  // Rows by what they name; the last: the stack.
  using GroupKey = std::tuple<std::string, std::int64_t, std::string, std::string, std::string,
                              std::string, std::string, std::string, std::string, std::int64_t>;
  struct Group {
    MemoryRow row;
    std::string category;
    std::int64_t stack_id = 0;
    std::vector<BytesAlive> alive = {};
    std::vector<std::int64_t> site_ids = {};
  };
  using Groups = std::map<GroupKey, Group>;
  Group& GroupOf(Groups& groups, const SiteFacts& site, const BytesAlive& alive) const;
  Result<MemoryRow> Finished(Group& group, std::int64_t all_bytes);
  Result<std::vector<MemoryRow>> RowsOf(Groups& groups, std::int64_t all_bytes);
  Result<void> AddFreed(MemoryDevice& device);
  Result<void> AddSteps(MemoryDevice& device);
  Result<bool> SetMoment(MemoryDevice& device, const MemoryDeviceRow& row);

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
  row.kernel = site->kernel;
  row.nodes = site->nodes;
  row.reason = site->join_note;
  if (facts.has_compile && row.nodes.empty()) facts.no_node = NoNode(*site);
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
    case MemoryBy::kNode:
      row.label = of.label;
      row.direction = of.direction;
      row.kernel = of.kernel;
      row.nodes = of.nodes;
      row.reason = of.label.empty() ? of.reason : site.no_node;
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

// Adds what is alive of a site to its row.
MemoryFacts::Group& MemoryFacts::GroupOf(Groups& groups, const SiteFacts& site,
                                         const BytesAlive& alive) const {
  const MemoryRow row = RowOf(site);
  const std::int64_t stack = options_.by == MemoryBy::kStack ? site.stack_id : 0;
  const auto [entry, is_new] =
      groups.try_emplace({row.file, row.line.value_or(-1), row.function, row.label, row.direction,
                          row.kernel, row.nodes, row.category, row.reason, stack},
                         Group{.row = row, .category = site.row.category, .stack_id = stack});
  Group& group = entry->second;
  if (group.category != site.row.category) group.category.clear();
  group.row.size_bytes += alive.size_bytes;
  group.row.allocations += alive.allocations;
  return group;
}

Result<MemoryRow> MemoryFacts::Finished(Group& group, std::int64_t all_bytes) {
  group.row.category = group.category;
  if (all_bytes > 0)
    group.row.share = static_cast<double>(group.row.size_bytes) / static_cast<double>(all_bytes);
  ASSIGN_OR_RETURN(group.row.frames, FramesOf(group.stack_id));
  return std::move(group.row);
}

// Most bytes first.
Result<std::vector<MemoryRow>> MemoryFacts::RowsOf(Groups& groups, std::int64_t all_bytes) {
  std::vector<MemoryRow> rows;
  for (auto& [key, group] : groups) {
    ASSIGN_OR_RETURN(MemoryRow row, Finished(group, all_bytes));
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const MemoryRow& a, const MemoryRow& b) {
    return a.size_bytes > b.size_bytes;
  });
  return rows;
}

Result<void> MemoryFacts::AddRows(MemoryDevice& device) {
  Groups groups;
  FOR_EACH_ROW(const HeldBySite& held,
               Query<HeldBySite>(database_,
                                 {.snapshot_id = device.snapshot_id, .ordinal = device.ordinal})) {
    ASSIGN_OR_RETURN(const SiteFacts site, FactsOf(held.site_id, held.is_before));
    const bool has_line = !site.row.file.empty();
    device.alive_bytes += held.size_bytes;
    if (has_line) device.line_bytes += held.size_bytes;
    if (!has_line && !site.row.function.empty()) device.function_bytes += held.size_bytes;
    if (site.has_compile) device.graph_bytes += held.size_bytes;
    if (has_line || site.has_compile) device.named_bytes += held.size_bytes;
    GroupOf(groups, site, {held.size_bytes, held.allocations});
  }
  ASSIGN_OR_RETURN(device.rows, RowsOf(groups, device.alive_bytes));
  return {};
}

Result<void> MemoryFacts::AddFreed(MemoryDevice& device) {
  ASSIGN_OR_RETURN(
      const FreedAfterPeak freed,
      ReadFreedAfterPeak(database_, device.snapshot_id, device.ordinal, device.alive_bytes));
  Groups groups;
  for (const auto& [site_id, bytes] : freed.sites) {
    ASSIGN_OR_RETURN(const SiteFacts site, FactsOf(site_id, false));
    GroupOf(groups, site, bytes);
  }
  device.freed = MemoryFreed{{}, freed.size_bytes, freed.lower_peak_bytes};
  ASSIGN_OR_RETURN(device.freed->rows, RowsOf(groups, device.alive_bytes));
  return {};
}

// The steps, and what grew in each of the last ones.
Result<void> MemoryFacts::AddSteps(MemoryDevice& device) {
  ASSIGN_OR_RETURN(StepsOfMemory steps, ReadMemorySteps(database_, device.snapshot_id));
  device.steps = std::move(steps.steps);
  device.growing_steps = steps.last;
  Groups groups;
  for (const auto& [site_id, alive] : steps.sites) {
    ASSIGN_OR_RETURN(const SiteFacts site, FactsOf(site_id, false));
    Group& group = GroupOf(groups, site, alive.back());
    group.site_ids.push_back(site_id);
    group.alive.resize(alive.size());
    for (std::size_t i = 0; i < alive.size(); ++i) {
      group.alive[i].size_bytes += alive[i].size_bytes;
      group.alive[i].allocations += alive[i].allocations;
    }
  }
  for (auto& [key, group] : groups) {
    if (!IsGrowing(group.alive)) continue;
    ASSIGN_OR_RETURN(MemoryRow row, Finished(group, device.steps.back().alive_bytes));
    device.growth.push_back({std::move(row), std::move(group.alive), std::move(group.site_ids)});
  }
  std::stable_sort(device.growth.begin(), device.growth.end(),
                   [](const MemoryGrowth& a, const MemoryGrowth& b) {
                     return a.alive.back().size_bytes - a.alive.front().size_bytes >
                            b.alive.back().size_bytes - b.alive.front().size_bytes;
                   });
  return {};
}

// False: the recording does not hold the moment.
Result<bool> MemoryFacts::SetMoment(MemoryDevice& device, const MemoryDeviceRow& row) {
  switch (options_.at) {
    case MemoryAt::kPeak:
      device.ordinal = row.peak_ordinal;
      device.time_us = row.peak_us;
      device.reserved_bytes = row.reserved_at_peak_bytes;
      return true;
    case MemoryAt::kOom:
      if (!row.oom_ordinal) return false;
      device.ordinal = *row.oom_ordinal;
      return true;
    case MemoryAt::kTime: {
      const std::int64_t time_us = row.start_us.value_or(0) + options_.offset_us;
      if (!row.start_us || !row.taken_us || time_us > *row.taken_us) return false;
      constexpr std::int64_t kLastNs = 999;  // of that microsecond
      ASSIGN_OR_RETURN(
          const FirstRow<OrdinalOfTime> last,
          First(Query<OrdinalOfTime>(database_,
                                     {.snapshot_id = row.id, .end_ns = time_us * 1000 + kLastNs})));
      device.ordinal = last->ordinal;
      device.time_us = time_us;
      return true;
    }
    case MemoryAt::kStep: {
      const auto step =
          std::find_if(device.steps.begin(), device.steps.end(),
                       [&](const MemoryStep& one) { return one.step == options_.step; });
      if (step == device.steps.end()) return false;
      ASSIGN_OR_RETURN(
          const FirstRow<OrdinalOfTime> last,
          First(Query<OrdinalOfTime>(database_, {.snapshot_id = row.id, .end_ns = step->end_ns})));
      device.ordinal = last->ordinal;
      device.time_us = step->end_ns / 1000;
      return true;
    }
    case MemoryAt::kEnd:
      break;
  }
  device.ordinal = row.event_count - 1;
  device.time_us = row.taken_us;
  device.reserved_bytes = row.end_reserved_bytes;
  return true;
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
  device.start_us = row.start_us;
  device.base_bytes = row.base_bytes;
  device.peak_bytes = row.peak_bytes;
  device.end_bytes = row.end_bytes;
  const std::optional<std::int64_t> oom_ordinal = row.oom_ordinal;
  const std::optional<std::int64_t> end_reserved = row.end_reserved_bytes;
  RETURN_IF_ERROR(AddSteps(device));
  ASSIGN_OR_RETURN(const bool has_moment, SetMoment(device, row));
  if (!has_moment) return std::optional<MemoryDevice>();
  RETURN_IF_ERROR(AddRows(device));
  if (options_.at == MemoryAt::kPeak) RETURN_IF_ERROR(AddFreed(device));
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
  FOR_EACH_ROW(const MemoryDeviceRow& row,
               Query<MemoryDeviceRow>(database_,
                                      {options_.run_id, options_.asked.rank, options_.asked.pid})) {
    if (options_.snapshot_id && row.id != *options_.snapshot_id) continue;
    has_any = true;
    ASSIGN_OR_RETURN(std::optional<MemoryDevice> device, DeviceOf(row));
    if (device) answer.devices.push_back(std::move(*device));
  }
  if (!has_any)
    return Fail(ErrorCode::kNotFound,
                fmt::format("the run has no snapshot of the allocator and no profile with memory "
                            "events{}: torch.cuda.memory._dump_snapshot() writes the one, "
                            "torch.profiler with profile_memory=True the other",
                            options_.asked.IsGiven() ? " of " + options_.asked.Text() : ""));
  if (options_.asked.IsGiven()) {
    ASSIGN_OR_RETURN(const FirstRow<MemoryOfOthers> others,
                     First(Query<MemoryOfOthers>(
                         database_, {options_.run_id, options_.asked.rank, options_.asked.pid})));
    answer.notes.push_back(
        options_.asked.Only(static_cast<std::size_t>(others->count), "recording"));
  }
  if (answer.devices.empty())
    answer.notes.push_back(
        options_.at == MemoryAt::kStep
            ? fmt::format("the recordings do not hold the end of step {} (ProfilerStep#{})",
                          options_.step, options_.step)
        : options_.at == MemoryAt::kTime
            ? "no event of the recordings is that late, or their events have no times"
            : "no allocation failed while these snapshots were recorded");
  FOR_EACH_ROW(const RecordingProblem& row,
               Query<RecordingProblem>(database_,
                                       {options_.run_id, options_.asked.rank, options_.asked.pid}))
    answer.notes.push_back(fmt::format(
        "not all of {} is counted: {}{}", row.path, row.message,
        row.is_cut ? "; what it lacks the allocation of counts as alive from the beginning" : ""));
  return answer;
}

}  // namespace

Result<MemoryAnswer> Memory(Database& database, const MemoryOptions& options) {
  return MemoryFacts(database, options).Answer();
}

}  // namespace tlparse
