#include "facts/job/job_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "queries/facts/job/job_graphs.h"

namespace tlparse {

Result<JobGraphs> JobGraphs::Load(Database& database, const Job& job) {
  JobGraphs result;
  std::map<std::tuple<std::int32_t, Direction, std::int32_t>, std::int32_t> slots;
  std::int32_t last_compile = -1;
  std::map<Direction, std::int32_t> count;
  FOR_EACH_ROW(const GraphOfJob& row,
               Query<GraphOfJob>(database, {.in_compiles = job.InCompiles("compile_id")})) {
    const JobCompile* compile = job.FindCompile(row.compile_id);
    if (compile == nullptr) continue;
    JobGraph graph;
    graph.id = row.id;
    graph.compile = static_cast<std::int32_t>(compile - job.compiles().data());
    graph.direction = DirectionFrom(row.direction);
    if (graph.compile != last_compile) count.clear();
    last_compile = graph.compile;
    const std::int32_t ordinal = count[graph.direction]++;
    const auto [found, is_new] =
        slots.try_emplace({compile->slot, graph.direction, ordinal},
                          static_cast<std::int32_t>(result.graph_slots_.size()));
    if (is_new) result.graph_slots_.push_back({compile->slot, graph.direction, ordinal});
    graph.graph_slot = found->second;
    result.index_.emplace(graph.id, static_cast<std::int32_t>(result.graphs_.size()));
    result.graphs_.push_back(graph);
  }
  for (std::size_t i = 0; i < result.graph_slots_.size(); ++i)
    result.order_.push_back(static_cast<std::int32_t>(i));
  const auto key = [&](std::int32_t index) {
    const GraphSlot& slot = result.graph_slots_[static_cast<std::size_t>(index)];
    return std::tuple(job.SlotPosition(slot.slot), slot.direction, slot.ordinal);
  };
  std::sort(result.order_.begin(), result.order_.end(),
            [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
  return result;
}

const JobGraph* JobGraphs::Find(std::int64_t graph_id) const {
  const auto found = index_.find(graph_id);
  return found == index_.end() ? nullptr : &graphs_[static_cast<std::size_t>(found->second)];
}

std::string JobGraphs::Title(const Job& job, std::int32_t graph_slot) const {
  const GraphSlot& slot = graph_slots_[static_cast<std::size_t>(graph_slot)];
  std::string title = job.slots()[static_cast<std::size_t>(slot.slot)].Title();
  std::string which(Name(slot.direction));
  if (slot.ordinal > 0)
    which += fmt::format("{}{}", which.empty() ? "graph " : " ", slot.ordinal + 1);
  return which.empty() ? title : fmt::format("{} [{}]", title, which);
}

}  // namespace tlparse
