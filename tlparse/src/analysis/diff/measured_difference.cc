#include "analysis/diff/measured_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/cost/cost.h"

namespace tlparse {
namespace {

struct Answers {
  CostAnswer lines, kernels;
  std::int64_t steps = 0;  // 0: some profile marks none
};

Result<std::optional<Answers>> Ask(const MeasuredSide& side) {
  Answers answers;
  for (const CostBy by : {CostBy::kLine, CostBy::kKernel}) {
    CostOptions options;
    options.run_id = side.run_id;
    options.by = by;
    options.rank = side.rank;
    Result<CostAnswer> answer = Cost(*side.database, options);
    if (!answer && answer.error().code == ErrorCode::kNotFound) return std::optional<Answers>();
    if (!answer) return tl::unexpected<Error>(answer.error());
    (by == CostBy::kLine ? answers.lines : answers.kernels) = std::move(*answer);
  }
  for (const CostProfile& profile : answers.lines.profiles) {
    if (profile.steps == 0) {
      answers.steps = 0;
      break;
    }
    answers.steps += profile.steps;
  }
  return std::optional(std::move(answers));
}

// Empty: the row cannot be matched.
std::string KeyOf(const CostRow& row, bool is_kernel) {
  if (!is_kernel) {
    if (row.file.empty()) return {};
    return fmt::format("{}\n{}", row.file,
                       row.name.empty() ? fmt::format("{}", row.line.value_or(0)) : row.name);
  }
  if (!row.kernel_id) return {};
  return fmt::format("{}\n{}\n{}\n{}", row.label, row.direction, row.name,
                     row.debug_handle.value_or(-1));
}

void Compare(const CostAnswer& a, const CostAnswer& b, bool is_kernel, std::int64_t a_steps,
             std::int64_t b_steps, std::vector<MeasuredChange>& changes) {
  struct Sides {
    double a_us = 0, b_us = 0;
    std::int64_t a_calls = 0, b_calls = 0;
    const CostRow* row = nullptr;  // of side b
  };
  std::map<std::string, Sides> sums;
  for (const CostRow& row : a.rows) {
    Sides& sum = sums[KeyOf(row, is_kernel)];
    sum.a_us += row.share_us;
    sum.a_calls += row.calls;
  }
  for (const CostRow& row : b.rows) {
    Sides& sum = sums[KeyOf(row, is_kernel)];
    sum.b_us += row.share_us;
    sum.b_calls += row.calls;
    if (sum.row == nullptr) sum.row = &row;
  }
  for (const auto& [key, sum] : sums) {
    if (key.empty() || sum.a_calls == 0 || sum.b_calls == 0) continue;
    MeasuredChange change;
    change.is_kernel = is_kernel;
    change.name = is_kernel && sum.row->debug_handle
                      ? fmt::format("{}:{}", sum.row->name, *sum.row->debug_handle)
                      : sum.row->name;
    change.file = sum.row->file;
    change.line = sum.row->line.value_or(0);
    change.label = sum.row->label;
    change.direction = sum.row->direction;
    change.a_us = sum.a_us / static_cast<double>(a_steps > 0 ? a_steps : sum.a_calls);
    change.b_us = sum.b_us / static_cast<double>(b_steps > 0 ? b_steps : sum.b_calls);
    change.a_calls = sum.a_calls;
    change.b_calls = sum.b_calls;
    changes.push_back(std::move(change));
  }
}

}  // namespace

Result<std::optional<MeasuredDifference>> CompareMeasured(const MeasuredSide& a,
                                                          const MeasuredSide& b) {
  ASSIGN_OR_RETURN(const std::optional<Answers> of_a, Ask(a));
  if (!of_a) return std::optional<MeasuredDifference>();
  ASSIGN_OR_RETURN(const std::optional<Answers> of_b, Ask(b));
  if (!of_b) return std::optional<MeasuredDifference>();
  MeasuredDifference difference;
  difference.is_per_step = of_a->steps > 0 && of_b->steps > 0;
  const std::int64_t a_steps = difference.is_per_step ? of_a->steps : 0;
  const std::int64_t b_steps = difference.is_per_step ? of_b->steps : 0;
  Compare(of_a->lines, of_b->lines, false, a_steps, b_steps, difference.changes);
  Compare(of_a->kernels, of_b->kernels, true, a_steps, b_steps, difference.changes);
  std::stable_sort(difference.changes.begin(), difference.changes.end(),
                   [](const MeasuredChange& x, const MeasuredChange& y) {
                     return x.b_us - x.a_us > y.b_us - y.a_us;
                   });
  return std::optional(std::move(difference));
}

}  // namespace tlparse
