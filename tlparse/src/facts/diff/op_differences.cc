// Estimated runtimes and output tensors of the same graph on different ranks. Contents are
// compared, so ranks that share them cost a lookup each.
#include "queries/facts/diff/op_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "facts/execution/execution.h"
#include "facts/job/majority.h"
#include "facts/text/sequence_diff.h"

namespace tlparse {
namespace {

struct OpClass {
  std::vector<RankIndex> ranks;
  std::int64_t content_id = 0;
  std::int64_t estimate_id = 0;
};

struct OpOutputs {
  std::string name;
  std::string text;
};

// An op at another place with the same outputs is not a different tensor.
void DropMoved(TensorDivergence& divergence) {
  using Op = TensorDivergence::Op;
  for (auto op = divergence.ops.begin(); op != divergence.ops.end();) {
    const auto other = !op->text.empty() && !op->against_text.empty()
                           ? divergence.ops.end()
                           : std::find_if(op + 1, divergence.ops.end(), [&](const Op& candidate) {
                               return candidate.name == op->name &&
                                      candidate.text == op->against_text &&
                                      candidate.against_text == op->text;
                             });
    if (other == divergence.ops.end()) {
      ++op;
      continue;
    }
    divergence.ops.erase(other);
    op = divergence.ops.erase(op);
  }
}

class OpFinder {
 public:
  OpFinder(Database& database, ExecutionAnswer& answer) : database_(database), answer_(answer) {}

  Result<void> Run() {
    ASSIGN_OR_RETURN(auto by_graph, Load());
    answer_.graphs_with_estimates = by_graph.size();
    for (const std::int32_t graph_slot : answer_.graphs.order()) {
      const auto found = by_graph.find(graph_slot);
      if (found == by_graph.end() || found->second.size() < 2) continue;
      RETURN_IF_ERROR(CompareTensors(graph_slot, found->second));
      RETURN_IF_ERROR(CompareRuntimes(graph_slot, found->second));
    }
    std::stable_sort(answer_.runtimes.begin(), answer_.runtimes.end(),
                     [](const RuntimeSpread& a, const RuntimeSpread& b) {
                       return a.highest_ns - a.lowest_ns > b.highest_ns - b.lowest_ns;
                     });
    return {};
  }

 private:
  Result<std::map<std::int32_t, std::vector<OpClass>>> Load();
  Result<std::vector<OpOutputs>> Outputs(std::int64_t content_id);
  Result<std::vector<double>> Estimates(std::int64_t estimate_id);
  Result<void> CompareTensors(std::int32_t graph_slot, const std::vector<OpClass>& classes);
  Result<void> CompareRuntimes(std::int32_t graph_slot, const std::vector<OpClass>& classes);

  Database& database_;
  ExecutionAnswer& answer_;
};

Result<std::map<std::int32_t, std::vector<OpClass>>> OpFinder::Load() {
  std::map<std::int32_t, std::vector<OpClass>> by_graph;
  std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t>, std::size_t> index;
  ASSIGN_OR_RETURN(const std::vector<OpListUse>* const rows,
                   answer_.job.RowsOfWhole<OpListUse>([&](const JobRecords& whole) {
                     return Query<OpListUse>(database_, {.in_logs = whole.InLogs("record_id")});
                   }));
  for (const OpListUse& row : *rows) {
    const JobGraph* graph = answer_.graphs.Find(row.graph_id);
    if (graph == nullptr) continue;
    std::vector<OpClass>& classes = by_graph[graph->graph_slot];
    const auto [found, is_new] = index.try_emplace(
        {graph->graph_slot, row.content_id, row.estimate_content_id}, classes.size());
    if (is_new) classes.push_back({{}, row.content_id, row.estimate_content_id});
    classes[found->second].ranks.push_back(
        answer_.job.compiles()[static_cast<std::size_t>(graph->compile)].participant);
  }
  for (auto& [slot, classes] : by_graph) {
    for (OpClass& one : classes) {
      std::sort(one.ranks.begin(), one.ranks.end());
      one.ranks.erase(std::unique(one.ranks.begin(), one.ranks.end()), one.ranks.end());
    }
  }
  return by_graph;
}

Result<std::vector<OpOutputs>> OpFinder::Outputs(std::int64_t content_id) {
  std::vector<OpOutputs> ops;
  std::int64_t last = -1;
  FOR_EACH_ROW(const OutputOfOp& row, Query<OutputOfOp>(database_, {.content_id = content_id})) {
    if (row.ordinal != last) ops.push_back({std::string(row.name), {}});
    last = row.ordinal;
    if (!row.shape) continue;
    ops.back().text += fmt::format("{}{} stride {} {}", ops.back().text.empty() ? "" : "; ",
                                   *row.shape, row.stride, row.dtype);
  }
  return ops;
}

Result<std::vector<double>> OpFinder::Estimates(std::int64_t estimate_id) {
  std::vector<double> estimates;
  FOR_EACH_ROW(const EstimateOfOp& row,
               Query<EstimateOfOp>(database_, {.content_id = estimate_id})) {
    estimates.push_back(row.estimated_ns);
  }
  return estimates;
}

Result<void> OpFinder::CompareTensors(std::int32_t graph_slot, const std::vector<OpClass>& all) {
  constexpr std::size_t kMostOps = 50;
  std::vector<OpClass> classes;  // by what the ops are, whatever they were estimated at
  for (const OpClass& one : all) {
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const OpClass& c) {
      return c.content_id == one.content_id;
    });
    if (same == classes.end()) {
      classes.push_back(one);
    } else {
      same->ranks.insert(same->ranks.end(), one.ranks.begin(), one.ranks.end());
      std::sort(same->ranks.begin(), same->ranks.end());
    }
  }
  const bool has_majority = OrderByReference(classes);
  for (std::size_t i = 1; i < classes.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<OpOutputs> a, Outputs(classes[0].content_id));
    ASSIGN_OR_RETURN(const std::vector<OpOutputs> b, Outputs(classes[i].content_id));
    TensorDivergence divergence;
    divergence.graph_slot = graph_slot;
    divergence.ranks = classes[i].ranks;
    divergence.against = classes[0].ranks;
    divergence.has_majority = has_majority;
    const auto add = [&](std::string name, std::string text, std::string against) {
      if (divergence.ops.size() < kMostOps) {
        divergence.ops.push_back({std::move(name), std::move(text), std::move(against)});
      } else {
        ++divergence.left_out;
      }
    };
    for (const EditStep& step :
         AlignSequences(a.size(), b.size(),
                        [&](std::size_t x, std::size_t y) { return a[x].name == b[y].name; })) {
      if (step.kind == EditStep::Kind::kDelete)
        add(a[step.a].name, {}, a[step.a].text.empty() ? "no outputs" : a[step.a].text);
      if (step.kind == EditStep::Kind::kInsert)
        add(b[step.b].name, b[step.b].text.empty() ? "no outputs" : b[step.b].text, {});
      if (step.kind == EditStep::Kind::kKeep && a[step.a].text != b[step.b].text)
        add(a[step.a].name, b[step.b].text, a[step.a].text);
    }
    DropMoved(divergence);
    if (!divergence.ops.empty()) answer_.tensors.push_back(std::move(divergence));
  }
  return {};
}

// Ops are compared by position, so only among ranks whose ops are the same; sums among all.
Result<void> OpFinder::CompareRuntimes(std::int32_t graph_slot,
                                       const std::vector<OpClass>& classes) {
  constexpr std::size_t kMostOps = 10;
  RuntimeSpread spread;
  spread.graph_slot = graph_slot;
  std::map<std::int64_t, std::vector<std::pair<double, double>>> ranges;  // by op list
  bool is_first = true;
  for (const OpClass& one : classes) {
    ASSIGN_OR_RETURN(const std::vector<double> estimates, Estimates(one.estimate_id));
    if (estimates.empty()) continue;
    double sum = 0;
    std::vector<std::pair<double, double>>& range = ranges[one.content_id];
    for (std::size_t i = 0; i < estimates.size(); ++i) {
      sum += estimates[i];
      if (i >= range.size()) range.emplace_back(estimates[i], estimates[i]);
      range[i] = {std::min(range[i].first, estimates[i]), std::max(range[i].second, estimates[i])};
    }
    if (is_first || sum < spread.lowest_ns) spread.lowest_ns = sum, spread.lowest_ranks = one.ranks;
    if (is_first || sum > spread.highest_ns)
      spread.highest_ns = sum, spread.highest_ranks = one.ranks;
    is_first = false;
  }
  for (const auto& [content, range] : ranges) {
    ASSIGN_OR_RETURN(const std::vector<OpOutputs> ops, Outputs(content));
    for (std::size_t i = 0; i < range.size() && i < ops.size(); ++i) {
      if (range[i].first < range[i].second)
        spread.ops.push_back({ops[i].name, range[i].first, range[i].second});
    }
  }
  if (spread.ops.empty() && spread.lowest_ns == spread.highest_ns) return {};
  std::stable_sort(spread.ops.begin(), spread.ops.end(), [](const auto& a, const auto& b) {
    return a.highest_ns - a.lowest_ns > b.highest_ns - b.lowest_ns;
  });
  if (spread.ops.size() > kMostOps) spread.ops.resize(kMostOps);
  answer_.runtimes.push_back(std::move(spread));
  return {};
}

}  // namespace

Result<void> FindOpDifferences(Database& database, ExecutionAnswer& answer) {
  return OpFinder(database, answer).Run();
}

}  // namespace tlparse
