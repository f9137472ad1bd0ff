// The order in which ranks ran their compiled graphs, how much the estimated runtimes of one graph
// differ, and where output tensors differ. The answer of `tlparse execution`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "facts/job/job_graphs.h"
#include "facts/job/log_damage.h"

namespace tlparse {

// One difference of order: what this side ran there, and what the others did.
struct OrderDifference {
  std::int64_t position = 0;          // of this side's sequence, 0-based
  std::int64_t against_position = 0;  // of the others'
  std::vector<std::string> ran;       // graphs only this side ran there, at most 8
  std::vector<std::string> against_ran;
  std::string next;       // what this side ran at that place; empty: its order ends there
  bool is_moved = false;  // the same graphs in another order
};

struct ExecutionClass {
  std::vector<RankIndex> ranks;
  std::size_t executions = 0;
  std::size_t unlabelled = 0;  // graphs from the cache have no compile id; they agree with any
  // against the reference; the first is the first divergence
  std::vector<OrderDifference> differences;
  std::size_t left_out = 0;
  bool has_same_graphs = false;  // as the reference, equally often, in another order
  // With has_same_graphs: of processes with several threads, which run graphs in no fixed order.
  bool is_order_of_threads = false;
};

// Ranks whose estimates of one graph are the same.
struct RuntimeSpread {
  std::int32_t graph_slot = 0;
  double lowest_ns = 0, highest_ns = 0;  // of the graph's sum
  std::vector<RankIndex> lowest_ranks, highest_ranks;
  struct Op {
    std::string name;
    double lowest_ns = 0, highest_ns = 0;
  };
  std::vector<Op> ops;  // that differ, the widest first, at most 10
};

struct TensorDivergence {
  std::int32_t graph_slot = 0;
  std::vector<RankIndex> ranks, against;
  bool has_majority = true;
  struct Op {
    std::string name;
    std::string text, against_text;  // "[8, 16] stride [16, 1] float32"; empty: no such op
  };
  std::vector<Op> ops;  // at most 50
  std::size_t left_out = 0;
};

struct ExecutionAnswer {
  Job job;
  JobGraphs graphs;
  LogDamage damage;
  std::vector<ExecutionClass> classes;  // ranks with an execution order, the reference first
  bool has_majority = true;
  std::vector<RankIndex> without_order;  // ranks that logged none, where others did
  std::vector<RuntimeSpread> runtimes;   // only graphs where estimates differ, widest first
  std::vector<TensorDivergence> tensors;
  std::size_t graphs_with_estimates = 0;
  // With no order: what WhyNotWritten says of it; empty: a version that writes it.
  std::string not_written;
  // What damage of logs may explain is none.
  bool IsDivergent(const ExecutionClass& one) const;
  bool HasDivergence() const;
};

struct ExecutionOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
};
// Where no log has an order.
Result<void> SayWhyNoOrder(Database& database, ExecutionAnswer& answer);
Result<ExecutionAnswer> AnalyzeExecution(Database& database, const ExecutionOptions& options);
Result<void> FindExecutionClasses(Database& database, ExecutionAnswer& answer);
Result<void> FindOpDifferences(Database& database, ExecutionAnswer& answer);

}  // namespace tlparse
