// Memory that grows in each of the last steps.
#include <fmt/format.h>

#include <algorithm>

#include "base/human_bytes.h"
#include "facts/memory/memory.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// Fewer steps, or less of what is alive, may be the end of a warm-up.
constexpr std::size_t kFewestStepsOfFinding = 4;
constexpr double kLeastShare = 0.01;

// Growth of the line in each step.
std::vector<std::int64_t> StepsOf(const std::vector<BytesAlive>& alive) {
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < alive.size(); ++i)
    steps.push_back(alive[i].size_bytes - alive[i - 1].size_bytes);
  return steps;
}

// How far apart what the other lines hold is after these steps.
std::int64_t SpreadOfOthers(const MemoryDevice& device, const MemoryGrowth& growth) {
  const std::size_t first = device.steps.size() - growth.alive.size();
  std::int64_t least = 0, most = 0;
  for (std::size_t i = 0; i < growth.alive.size(); ++i) {
    const std::int64_t others = device.steps[first + i].alive_bytes - growth.alive[i].size_bytes;
    least = i == 0 ? others : std::min(least, others);
    most = i == 0 ? others : std::max(most, others);
  }
  return most - least;
}

// A leak: steady, more than the rest moves, and worth a word. What slows down fills a cache; what
// others give back moves from one line to another.
bool IsLeak(const MemoryDevice& device, const MemoryGrowth& growth) {
  const std::vector<std::int64_t> steps = StepsOf(growth.alive);
  if (steps.size() < kFewestStepsOfFinding) return false;
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  const std::int64_t grown = growth.alive.back().size_bytes - growth.alive.front().size_bytes;
  return *least >= *most - *most / 4 && grown > SpreadOfOthers(device, growth) &&
         static_cast<double>(grown) >
             kLeastShare * static_cast<double>(device.steps.back().alive_bytes);
}

void AddGrowth(FindingContext& context, const MemoryDevice& device, const MemoryGrowth& growth) {
  const MemoryStep& last = device.steps.back();
  const MemoryStep& before = device.steps[device.steps.size() - growth.alive.size()];
  const auto count = static_cast<std::int64_t>(growth.alive.size()) - 1;
  const std::int64_t grown = growth.alive.back().size_bytes - growth.alive.front().size_bytes;
  Finding& finding = context.Add(FindingKind::kMemoryGrowth, FindingSeverity::kWarning);
  finding.rank_count = 1;
  if (device.rank) finding.ranks = {*device.rank};
  const MemoryRow& row = growth.row;
  if (!row.file.empty()) finding.place = FindingPlace{row.file, row.line.value_or(0), {}};
  finding.function = row.function;
  finding.cause = "memory grows";
  finding.since_us = before.end_ns / 1000;
  finding.title = fmt::format(
      "Memory{}{} grows by {} a step{}",
      device.device ? fmt::format(" of device {}", *device.device) : " of the CPU",
      device.rank ? fmt::format(" of rank {}", *device.rank) : "", HumanBytes(grown / count),
      finding.place ? " at " + PlaceText(*finding.place) : "");
  finding.detail = fmt::format(
      "After each of the steps {} to {} more blocks were alive than before: {} after step {}. What "
      "else was alive changed by at most {}. Alive after step {}: {}.",
      device.steps[device.steps.size() - static_cast<std::size_t>(count)].step, last.step,
      HolderText(row), last.step, HumanBytes(SpreadOfOthers(device, growth)), last.step,
      HumanBytes(last.alive_bytes));
  finding.suggestion =
      "look for what keeps these tensors (a list, a dict, a loss with its graph): keep "
      "'loss.detach()' or a number instead";
  if (device.kind != "kineto")
    finding.suggestion += "; 'tlparse memory --at end --by stack' has the stacks";
  std::string sites;
  for (const std::int64_t site : growth.site_ids)
    sites += (sites.empty() ? "" : ", ") + std::to_string(site);
  finding.query = fmt::format(
      "SELECT * FROM memory_allocation "
      "WHERE snapshot_id = {} AND coalesce(site_id, 0) IN ({}) AND alloc_us >= {} AND alloc_us <= "
      "{} "
      "AND (free_us IS NULL OR free_us > {})",
      device.snapshot_id, sites, before.end_ns / 1000, last.end_ns / 1000, last.end_ns / 1000);
}

}  // namespace

Result<void> FindMemoryGrowth(FindingContext& context) {
  const Result<MemoryAnswer> answer =
      Memory(context.database, {.run_id = context.job.run_id(), .at = MemoryAt::kEnd, .asked = {}});
  if (!answer) {
    if (answer.error().code == ErrorCode::kNotFound) return {};
    return tl::unexpected<Error>(answer.error());
  }
  for (const MemoryDevice& device : answer->devices) {
    if (!IsOfLaunch(context, device.time_us)) continue;
    for (const MemoryGrowth& growth : device.growth) {
      if (IsLeak(device, growth)) AddGrowth(context, device, growth);
    }
  }
  return {};
}

}  // namespace tlparse
