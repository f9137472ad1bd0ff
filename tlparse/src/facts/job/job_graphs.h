// The graphs of a job's compiles. Graphs of different ranks correspond by slot, direction and
// position.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "artifacts/common/graph/direction.h"
#include "base/result.h"
#include "facts/job/job.h"

namespace tlparse {

struct JobGraph {
  std::int64_t id = 0;
  std::int32_t compile = 0;  // index into Job::compiles
  std::int32_t graph_slot = 0;
  Direction direction = Direction::kUnknown;
};

// A graph of the job; each rank may have its own.
struct GraphSlot {
  std::int32_t slot = 0;
  Direction direction = Direction::kUnknown;
  std::int32_t ordinal = 0;  // among the graphs of that compile and direction
};

class JobGraphs {
 public:
  static Result<JobGraphs> Load(Database& database, const Job& job);
  // Of a part of the job `whole`, whose graphs these are.
  JobGraphs Part(const Job& whole, const Job& part) const;

  const std::vector<JobGraph>& graphs() const { return graphs_; }
  const JobGraph* Find(std::int64_t graph_id) const;  // nullptr: of another run
  const std::vector<GraphSlot>& graph_slots() const { return graph_slots_; }
  // Graph slots in the order of the job's slots, forward before backward.
  const std::vector<std::int32_t>& order() const { return order_; }
  // "1/0 forward [backward 2]", as these ranks name it; of none, as the slot is named.
  std::string Title(const Job& job, std::int32_t graph_slot,
                    const std::vector<RankIndex>& who = {}) const;

 private:
  class Maker;

  std::vector<JobGraph> graphs_;
  std::unordered_map<std::int64_t, std::int32_t> index_;
  std::vector<GraphSlot> graph_slots_;
  std::vector<std::int32_t> order_;
};

}  // namespace tlparse
