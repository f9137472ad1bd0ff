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

constexpr std::size_t kMostNamedLines = 3;

std::int64_t GrownBytes(const MemoryGrowth& growth) {
  return growth.alive.back().size_bytes - growth.alive.front().size_bytes;
}

// More came in the later steps than in the earlier ones, or nearly as much. What slows down fills a
// cache.
bool IsSteady(const MemoryGrowth& growth) {
  const std::size_t count = growth.alive.size() - 1;
  if (count < kFewestStepsOfFinding) return false;
  const auto between = [&](std::size_t first, std::size_t last) {
    return growth.alive[last].size_bytes - growth.alive[first].size_bytes;
  };
  const std::int64_t early = between(0, count / 2), late = between(count - count / 2, count);
  return late >= early - early / 4;
}

// What grows at once on one device.
struct Leak {
  std::vector<const MemoryGrowth*> lines;  // the largest first
  std::int64_t grown_bytes = 0;
  std::int64_t spread_bytes = 0;  // how far apart what else is alive is after these steps
  std::size_t steps = 0;
};

Leak LeakOf(const MemoryDevice& device) {
  Leak leak;
  for (const MemoryGrowth& growth : device.growth) {
    if (!IsSteady(growth)) continue;
    leak.lines.push_back(&growth);
    leak.grown_bytes += GrownBytes(growth);
    leak.steps = growth.alive.size() - 1;
  }
  std::int64_t least = 0, most = 0;
  for (std::size_t i = 0; !leak.lines.empty() && i <= leak.steps; ++i) {
    std::int64_t others = device.steps[device.steps.size() - 1 - leak.steps + i].alive_bytes;
    for (const MemoryGrowth* const line : leak.lines) others -= line->alive[i].size_bytes;
    least = i == 0 ? others : std::min(least, others);
    most = i == 0 ? others : std::max(most, others);
  }
  leak.spread_bytes = most - least;
  return leak;
}

// More than the rest moves, and worth a word. What others give back moves from one line to another.
bool IsLeak(const MemoryDevice& device, const Leak& leak) {
  return !leak.lines.empty() && leak.grown_bytes > leak.spread_bytes &&
         static_cast<double>(leak.grown_bytes) >
             kLeastShare * static_cast<double>(device.steps.back().alive_bytes);
}

// "21.0 MB of model.py:12 (other), 5.2 MB of train.py:17 (other) and 2 more"
std::string LinesText(const Leak& leak) {
  const std::size_t shown = std::min(kMostNamedLines, leak.lines.size());
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : ", ") + HolderText(leak.lines[i]->row);
  if (leak.lines.size() > shown) text += fmt::format(" and {} more", leak.lines.size() - shown);
  return text;
}

// "Memory of device 0 of rank 2 grows by 3.7 MB a step, 2.1 MB of it at model.py:12"
std::string TitleOf(const MemoryDevice& device, const Leak& leak, const Finding& finding) {
  const auto count = static_cast<std::int64_t>(leak.steps);
  const std::int64_t first = GrownBytes(*leak.lines.front()) / count;
  std::string name = MemoryName(device);
  name = name == "pinned memory" ? "Pinned memory" : "Memory of " + name;
  return fmt::format(
      "{}{} grows by {} a step{}{}", name,
      device.rank ? fmt::format(" of rank {}", *device.rank) : "",
      HumanBytes(leak.grown_bytes / count),
      finding.place && leak.lines.size() > 1 ? fmt::format(", {} of it", HumanBytes(first)) : "",
      finding.place ? " at " + PlaceText(*finding.place) : "");
}

std::string QueryOf(const MemoryDevice& device, const Leak& leak, std::int64_t before_ns,
                    std::int64_t last_ns) {
  std::string sites;
  for (const MemoryGrowth* const line : leak.lines) {
    for (const std::int64_t site : line->site_ids)
      sites += (sites.empty() ? "" : ", ") + std::to_string(site);
  }
  return fmt::format(
      "SELECT * FROM memory_allocation "
      "WHERE snapshot_id = {} AND coalesce(site_id, 0) IN ({}) AND alloc_us >= {} AND alloc_us <= "
      "{} "
      "AND (free_us IS NULL OR free_us > {})",
      device.snapshot_id, sites, before_ns / 1000, last_ns / 1000, last_ns / 1000);
}

void AddLeak(FindingContext& context, const MemoryDevice& device, const Leak& leak) {
  const MemoryStep& last = device.steps.back();
  const std::size_t before = device.steps.size() - 1 - leak.steps;
  Finding& finding = context.Add(FindingKind::kMemoryGrowth, FindingSeverity::kWarning);
  finding.rank_count = 1;
  if (device.rank) finding.ranks = {*device.rank};
  const MemoryRow& row = leak.lines.front()->row;
  if (!row.file.empty()) finding.place = FindingPlace{row.file, row.line.value_or(0), {}};
  finding.function = row.function;
  finding.cause = "memory grows";
  finding.since_us = device.steps[before].end_ns / 1000;
  finding.title = TitleOf(device, leak, finding);
  finding.detail = fmt::format(
      "After each of the steps {} to {} more blocks were alive than before: {} after step {}. What "
      "else was alive changed by at most {}. Alive after step {}: {}.",
      device.steps[before + 1].step, last.step, LinesText(leak), last.step,
      HumanBytes(leak.spread_bytes), last.step, HumanBytes(last.alive_bytes));
  finding.suggestion =
      "look for what keeps these tensors (a list, a dict, a loss with its graph): keep "
      "'loss.detach()' or a number instead";
  if (device.kind != "kineto")
    finding.suggestion += "; 'tlparse memory --at end --by stack' has the stacks";
  finding.query = QueryOf(device, leak, device.steps[before].end_ns, last.end_ns);
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
    const Leak leak = LeakOf(device);
    if (IsLeak(device, leak)) AddLeak(context, device, leak);
  }
  return {};
}

}  // namespace tlparse
