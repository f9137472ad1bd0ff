#include "facts/diff/measured_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "facts/contents/kernel_identity.h"

namespace tlparse {
namespace {

struct Answers {
  CostAnswer lines, kernels;
  MeasuredSideTimes times;
};

Result<std::optional<Answers>> AskCosts(const MeasuredSide& side) {
  CostOptions options;
  options.run_id = side.run_id;
  options.asked.rank = side.rank;
  options.process_ids = side.process_ids;
  constexpr CostBy kQuestions[] = {CostBy::kLine, CostBy::kKernel};
  Result<std::vector<CostAnswer>> answer = Costs(*side.database, options, kQuestions);
  if (!answer && answer.error().code == ErrorCode::kNotFound) return std::optional<Answers>();
  if (!answer) return tl::unexpected<Error>(answer.error());
  Answers answers{std::move((*answer)[0]), std::move((*answer)[1]), {}};
  bool has_steps = true;
  for (const CostProfile& profile : answers.lines.profiles) {
    has_steps &= profile.steps > 0;
    answers.times.steps += profile.steps;
    answers.times.window_us += profile.window_us;
    answers.times.kernel_us += profile.kernel_us.value_or(0);
    AddDevices(profile, answers.times);
  }
  if (!has_steps) answers.times.steps = 0;
  return std::optional(std::move(answers));
}

// By what a side's times are divided: its steps, or calls.
struct Divisor {
  std::int64_t steps = 0;  // 0: calls
  double operator()(double us, std::int64_t calls) const {
    return us / static_cast<double>(steps > 0 ? steps : std::max<std::int64_t>(calls, 1));
  }
};

struct CostSum {
  double us = 0;
  std::int64_t calls = 0;
  const CostRow* row = nullptr;
  void Add(const CostRow& added) {
    us += added.share_us;
    calls += added.calls;
    if (row == nullptr) row = &added;
  }
};

void CompareLines(const CostAnswer& a, const CostAnswer& b, Divisor a_mean, Divisor b_mean,
                  MeasuredDifference& difference) {
  std::map<std::pair<std::string_view, std::string>, std::pair<CostSum, CostSum>> lines;
  for (const bool is_b : {false, true}) {
    for (const CostRow& row : (is_b ? b : a).rows) {
      if (row.file.empty()) continue;
      auto& sides =
          lines[{row.file, row.name.empty() ? std::to_string(row.line.value_or(0)) : row.name}];
      (is_b ? sides.second : sides.first).Add(row);
    }
  }
  for (const auto& [key, sides] : lines) {
    const auto& [of_a, of_b] = sides;
    if (of_a.row == nullptr || of_b.row == nullptr) continue;
    MeasuredChange change;
    change.name = of_b.row->name;
    change.file = of_b.row->file;
    change.line = of_b.row->line.value_or(0);
    change.a_us = a_mean(of_a.us, of_a.calls);
    change.b_us = b_mean(of_b.us, of_b.calls);
    change.a_calls = of_a.calls;
    change.b_calls = of_b.calls;
    ++difference.lines.count;
    difference.lines.a_us += of_a.us;
    difference.lines.b_us += of_b.us;
    difference.changes.push_back(std::move(change));
  }
}

// A kernel of a graph that ran.
struct Kernel {
  CostSum sum;
  const GraphKernels* graph = nullptr;
  const KernelIdentity* identity = nullptr;  // nullptr: its call is not in the code
};

std::string NameOf(const CostRow& row) {
  return row.debug_handle ? fmt::format("{}:{}", row.name, *row.debug_handle) : row.name;
}

class KernelComparison {
 public:
  KernelComparison(const CompilePairs& compiles, MeasuredDifference& difference)
      : difference_(difference) {
    for (std::size_t i = 0; i < compiles.size(); ++i) {
      pair_of_a_.emplace(compiles[i].first, i);
      pair_of_b_.emplace(compiles[i].second, i);
    }
  }

  Result<void> Run(Database& a_database, const CostAnswer& a, Divisor a_mean, Database& b_database,
                   const CostAnswer& b, Divisor b_mean) {
    ASSIGN_OR_RETURN(const std::vector<Kernel> of_a, Load(a_database, a, a_graphs_));
    ASSIGN_OR_RETURN(const std::vector<Kernel> of_b, Load(b_database, b, b_graphs_));
    has_cpp_a_ = HasCpp(of_a);
    has_cpp_b_ = HasCpp(of_b);
    std::map<Key, std::vector<const Kernel*>> free_ones;  // of a, in the order of the code
    for (const Kernel& kernel : of_a) {
      if (const std::optional<Key> key = KeyOf(kernel, pair_of_a_)) {
        free_ones[*key].push_back(&kernel);
      } else {
        AddAlone(kernel, a_mean, false);
      }
    }
    std::map<Key, std::size_t> used;
    for (const Kernel& kernel : of_b) {
      const std::optional<Key> key = KeyOf(kernel, pair_of_b_);
      const auto found = key ? free_ones.find(*key) : free_ones.end();
      std::size_t* const next = found == free_ones.end() ? nullptr : &used[*key];
      if (next == nullptr || *next == found->second.size()) {
        AddAlone(kernel, b_mean, true);
        continue;
      }
      AddPair(*found->second[(*next)++], a_mean, kernel, b_mean);
    }
    for (const auto& [key, kernels] : free_ones) {
      for (std::size_t i = used[key]; i < kernels.size(); ++i) AddAlone(*kernels[i], a_mean, false);
    }
    return {};
  }

 private:
  // The pair of compiles, the graph of it, and what the kernel computes.
  using Key = std::tuple<std::size_t, std::string, std::int64_t, std::string>;
  using Graphs = std::map<std::int64_t, GraphKernels>;

  // Of the joined kernels; ids of a graph's kernels are in the order of its code.
  static Result<std::vector<Kernel>> Load(Database& database, const CostAnswer& answer,
                                          Graphs& graphs) {
    std::map<std::pair<std::int64_t, std::int64_t>, Kernel> kernels;  // by graph and kernel
    for (const CostRow& row : answer.rows) {
      if (!row.kernel_id) continue;
      Kernel& kernel = kernels[{row.graph_id.value_or(0), *row.kernel_id}];
      kernel.sum.Add(row);
      if (!row.graph_id || kernel.graph != nullptr) continue;
      const auto [graph, is_new] = graphs.try_emplace(*row.graph_id);
      if (is_new) {
        ASSIGN_OR_RETURN(graph->second, LoadGraphKernels(database, *row.graph_id));
      }
      kernel.graph = &graph->second;
      const auto identity = graph->second.kernels.find(*row.kernel_id);
      if (identity != graph->second.kernels.end()) kernel.identity = &identity->second;
    }
    std::vector<Kernel> ordered;
    for (const auto& [id, kernel] : kernels) ordered.push_back(kernel);
    return ordered;
  }

  static std::optional<Key> KeyOf(const Kernel& kernel,
                                  const std::map<std::int64_t, std::size_t>& pairs) {
    if (kernel.graph == nullptr || kernel.identity == nullptr) return std::nullopt;
    const auto pair = pairs.find(kernel.graph->compile_id);
    if (pair == pairs.end()) return std::nullopt;
    std::string what = kernel.identity->text;
    // Kernels of equal codes are equal, whatever they compute.
    if (what.empty() && !kernel.graph->code_hash.empty())
      what = fmt::format("{} of {}", kernel.sum.row->name, kernel.graph->code_hash);
    if (what.empty()) return std::nullopt;
    return Key(pair->second, kernel.graph->direction, kernel.graph->slot, std::move(what));
  }

  static MeasuredChange Describe(const Kernel& kernel) {
    MeasuredChange change;
    change.kind = MeasuredKind::kKernel;
    change.name = NameOf(*kernel.sum.row);
    change.label = kernel.sum.row->label;
    change.direction = kernel.sum.row->direction;
    if (kernel.graph != nullptr) change.slot = kernel.graph->slot;
    if (kernel.identity != nullptr) {
      change.shapes = kernel.identity->text;
      change.has_symbols = kernel.identity->has_symbols;
    }
    return change;
  }

  static bool IsCpp(const Kernel& kernel) { return kernel.sum.row->name.starts_with("cpp_"); }
  static bool HasCpp(const std::vector<Kernel>& kernels) {
    return std::any_of(kernels.begin(), kernels.end(), IsCpp);
  }

  // A kernel of which the other side has none, if the log says what it computes.
  void AddAlone(const Kernel& kernel, Divisor mean, bool is_b) {
    const double us = kernel.sum.us;
    if (IsCpp(kernel) && !(is_b ? has_cpp_a_ : has_cpp_b_)) {
      ++(is_b ? difference_.unrecorded_b : difference_.unrecorded_a);
      (is_b ? difference_.unrecorded.b_us : difference_.unrecorded.a_us) += us;
      return;
    }
    if (kernel.identity == nullptr || kernel.identity->text.empty()) {
      ++(is_b ? difference_.unknown_b : difference_.unknown_a);
      (is_b ? difference_.unknown.b_us : difference_.unknown.a_us) += us;
      return;
    }
    MeasuredChange change = Describe(kernel);
    (is_b ? change.b_us : change.a_us) = mean.steps > 0 ? mean(us, kernel.sum.calls) : us;
    (is_b ? change.b_calls : change.a_calls) = kernel.sum.calls;
    (is_b ? difference_.only_b : difference_.only_a).push_back(std::move(change));
  }

  void AddPair(const Kernel& a, Divisor a_mean, const Kernel& b, Divisor b_mean) {
    MeasuredChange change = Describe(b);
    if (a.sum.row->name != b.sum.row->name) change.a_name = NameOf(*a.sum.row);
    change.a_us = a_mean(a.sum.us, a.sum.calls);
    change.b_us = b_mean(b.sum.us, b.sum.calls);
    change.a_calls = a.sum.calls;
    change.b_calls = b.sum.calls;
    change.has_other_code = a.graph->code_hash != b.graph->code_hash;
    ++difference_.kernels.count;
    difference_.kernels.a_us += a.sum.us;
    difference_.kernels.b_us += b.sum.us;
    difference_.changes.push_back(std::move(change));
  }

  MeasuredDifference& difference_;
  std::map<std::int64_t, std::size_t> pair_of_a_, pair_of_b_;
  bool has_cpp_a_ = false, has_cpp_b_ = false;
  Graphs a_graphs_, b_graphs_;
};

}  // namespace

bool MeasuredDifference::IsFair() const {
  constexpr double kFair = 0.5;
  const auto is_most = [&](const MeasuredCoverage& part, double a_us, double b_us) {
    return a_us > 0 && b_us > 0 && part.a_us >= kFair * a_us && part.b_us >= kFair * b_us;
  };
  const bool has_most_kernels =
      is_most(kernels, a.kernel_us, b.kernel_us) || is_most(lines, a.kernel_us, b.kernel_us);
  return has_logs ? has_most_kernels : has_most_kernels || is_most(ops, a.op_us, b.op_us);
}

void AddDevices(const CostProfile& profile, MeasuredSideTimes& times) {
  times.device_us += profile.device_in_calls_us + profile.device_outside_us +
                     profile.device_unknown_us + profile.device_replay_us;
  times.graph_us += profile.device_in_graphs_us;
  times.replays += static_cast<double>(profile.replays);
}

void FinishMeasured(MeasuredDifference& difference) {
  std::stable_sort(difference.changes.begin(), difference.changes.end(),
                   [](const MeasuredChange& x, const MeasuredChange& y) {
                     return x.b_us - x.a_us > y.b_us - y.a_us;
                   });
  for (std::vector<MeasuredChange>* only : {&difference.only_a, &difference.only_b}) {
    std::stable_sort(only->begin(), only->end(),
                     [](const MeasuredChange& x, const MeasuredChange& y) {
                       return x.a_us + x.b_us > y.a_us + y.b_us;
                     });
  }
  if (!difference.is_per_step) return;
  const auto divide = [](double& us, std::int64_t steps) { us /= static_cast<double>(steps); };
  for (MeasuredSideTimes* side : {&difference.a, &difference.b}) {
    for (double* us : {&side->window_us, &side->kernel_us, &side->op_us, &side->device_us,
                       &side->graph_us, &side->replays})
      divide(*us, side->steps);
  }
  for (MeasuredCoverage* part : {&difference.lines, &difference.kernels, &difference.ops,
                                 &difference.unknown, &difference.unrecorded}) {
    divide(part->a_us, difference.a.steps);
    divide(part->b_us, difference.b.steps);
  }
}

Result<std::optional<MeasuredDifference>> CompareMeasured(const MeasuredSide& a,
                                                          const MeasuredSide& b,
                                                          const CompilePairs& compiles) {
  ASSIGN_OR_RETURN(const std::optional<Answers> of_a, AskCosts(a));
  if (!of_a) return std::optional<MeasuredDifference>();
  ASSIGN_OR_RETURN(const std::optional<Answers> of_b, AskCosts(b));
  if (!of_b) return std::optional<MeasuredDifference>();
  MeasuredDifference difference;
  difference.a = of_a->times;
  difference.b = of_b->times;
  difference.is_per_step = difference.a.steps > 0 && difference.b.steps > 0;
  const Divisor a_mean{difference.is_per_step ? difference.a.steps : 0};
  const Divisor b_mean{difference.is_per_step ? difference.b.steps : 0};
  CompareLines(of_a->lines, of_b->lines, a_mean, b_mean, difference);
  RETURN_IF_ERROR(KernelComparison(compiles, difference)
                      .Run(*a.database, of_a->kernels, a_mean, *b.database, of_b->kernels, b_mean));
  FinishMeasured(difference);
  return std::optional(std::move(difference));
}

}  // namespace tlparse
