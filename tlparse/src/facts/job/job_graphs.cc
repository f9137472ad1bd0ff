#include "facts/job/job_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "queries/facts/job/job_graphs.h"

namespace tlparse {

// Graphs come compile by compile.
class JobGraphs::Maker {
 public:
  explicit Maker(const Job& job) : job_(job), slots_(job.slots().size() * kDirections) {}

  void Add(const JobCompile& compile, std::int64_t id, Direction direction) {
    JobGraph graph;
    graph.id = id;
    graph.compile = static_cast<std::int32_t>(&compile - job_.compiles().data());
    graph.direction = direction;
    if (graph.compile != last_compile_) count_.fill(0);
    last_compile_ = graph.compile;
    const auto ordinal = static_cast<std::size_t>(count_[static_cast<std::size_t>(direction)]++);
    std::vector<std::int32_t>& slots = slots_[static_cast<std::size_t>(compile.slot) * kDirections +
                                              static_cast<std::size_t>(direction)];
    if (slots.size() == ordinal) {
      slots.push_back(static_cast<std::int32_t>(result_.graph_slots_.size()));
      result_.graph_slots_.push_back({compile.slot, direction, static_cast<std::int32_t>(ordinal)});
    }
    graph.graph_slot = slots[ordinal];
    result_.index_.emplace(id, static_cast<std::int32_t>(result_.graphs_.size()));
    result_.graphs_.push_back(graph);
  }

  JobGraphs Take() {
    for (std::size_t i = 0; i < result_.graph_slots_.size(); ++i)
      result_.order_.push_back(static_cast<std::int32_t>(i));
    const auto key = [&](std::int32_t index) {
      const GraphSlot& slot = result_.graph_slots_[static_cast<std::size_t>(index)];
      return std::tuple(job_.SlotPosition(slot.slot), slot.direction, slot.ordinal);
    };
    std::sort(result_.order_.begin(), result_.order_.end(),
              [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kDirections = static_cast<std::size_t>(Direction::kUnknown) + 1;

  const Job& job_;
  JobGraphs result_;
  std::vector<std::vector<std::int32_t>> slots_;  // by slot and direction, by ordinal
  std::int32_t last_compile_ = -1;
  std::array<std::int32_t, kDirections> count_{};
};

Result<JobGraphs> JobGraphs::Load(Database& database, const Job& job) {
  Maker maker(job);
  FOR_EACH_ROW(const GraphOfJob& row,
               Query<GraphOfJob>(database, {.in_compiles = job.InCompiles("compile_id")})) {
    if (const JobCompile* const compile = job.FindCompile(row.compile_id))
      maker.Add(*compile, row.id, DirectionFrom(row.direction));
  }
  return maker.Take();
}

JobGraphs JobGraphs::Part(const Job& whole, const Job& part) const {
  Maker maker(part);
  for (const JobGraph& graph : graphs_) {
    const std::int64_t compile_id = whole.compiles()[static_cast<std::size_t>(graph.compile)].id;
    if (const JobCompile* const compile = part.FindCompile(compile_id))
      maker.Add(*compile, graph.id, graph.direction);
  }
  return maker.Take();
}

const JobGraph* JobGraphs::Find(std::int64_t graph_id) const {
  const auto found = index_.find(graph_id);
  return found == index_.end() ? nullptr : &graphs_[static_cast<std::size_t>(found->second)];
}

std::string JobGraphs::Title(const Job& job, std::int32_t graph_slot,
                             const std::vector<RankIndex>& who) const {
  const GraphSlot& slot = graph_slots_[static_cast<std::size_t>(graph_slot)];
  std::string title = job.SlotOf(slot.slot, who).Title();
  std::string which(Name(slot.direction));
  if (slot.ordinal > 0)
    which += fmt::format("{}{}", which.empty() ? "graph " : " ", slot.ordinal + 1);
  return which.empty() ? title : fmt::format("{} [{}]", title, which);
}

}  // namespace tlparse
