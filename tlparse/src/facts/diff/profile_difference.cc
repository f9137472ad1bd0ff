#include "facts/diff/profile_difference.h"

#include <algorithm>
#include <map>

#include "facts/cost/cost_by_shapes.h"

namespace tlparse {
namespace {

Result<ShapeCosts> AskShapes(const MeasuredSide& side) {
  CostOptions options;
  options.run_id = side.run_id;
  options.asked.rank = side.rank;
  return CostsByShapes(*side.database, options);
}

bool HasDeviceTime(const ShapeCosts& costs) {
  return std::any_of(costs.ops.begin(), costs.ops.end(),
                     [](const ShapeCost& op) { return !!op.device_us; });
}

MeasuredSideTimes TimesOf(const ShapeCosts& costs, bool by_device) {
  MeasuredSideTimes times;
  bool has_steps = true;
  for (const CostProfile& profile : costs.profiles) {
    has_steps &= profile.steps > 0;
    times.steps += profile.steps;
    times.window_us += profile.window_us;
    AddDevices(profile, times);
  }
  if (!has_steps) times.steps = 0;
  for (const ShapeCost& kernel : costs.kernels) times.kernel_us += kernel.us;
  for (const ShapeCost& op : costs.ops) times.op_us += by_device ? op.device_us.value_or(0) : op.us;
  return times;
}

void Compare(const std::vector<ShapeCost>& a, const std::vector<ShapeCost>& b, MeasuredKind kind,
             bool by_device, MeasuredDifference& difference) {
  const auto time = [&](const ShapeCost& cost) {
    return by_device ? cost.device_us.value_or(0) : cost.us;
  };
  const auto mean = [&](const ShapeCost& cost, const MeasuredSideTimes& side) {
    return time(cost) / static_cast<double>(difference.is_per_step ? side.steps : cost.calls);
  };
  MeasuredCoverage& part = kind == MeasuredKind::kKernel ? difference.kernels : difference.ops;
  using Key = std::pair<std::string_view, std::string_view>;
  std::map<Key, const ShapeCost*> of_a;
  for (const ShapeCost& cost : a) of_a.emplace(Key(cost.name, cost.shapes), &cost);
  for (const ShapeCost& cost : b) {
    const auto found = of_a.find({cost.name, cost.shapes});
    MeasuredChange change;
    change.kind = kind;
    change.name = cost.name;
    change.shapes = cost.shapes;
    change.b_calls = cost.calls;
    if (found == of_a.end()) {
      if (time(cost) == 0) continue;
      change.b_us = difference.is_per_step ? mean(cost, difference.b) : time(cost);
      difference.only_b.push_back(std::move(change));
      continue;
    }
    const ShapeCost& other = *found->second;
    of_a.erase(found);
    if (time(cost) == 0 && time(other) == 0) continue;
    change.a_us = mean(other, difference.a);
    change.b_us = mean(cost, difference.b);
    change.a_calls = other.calls;
    ++part.count;
    part.a_us += time(other);
    part.b_us += time(cost);
    difference.changes.push_back(std::move(change));
  }
  for (const auto& [key, cost] : of_a) {
    if (time(*cost) == 0) continue;
    MeasuredChange change;
    change.kind = kind;
    change.name = cost->name;
    change.shapes = cost->shapes;
    change.a_calls = cost->calls;
    change.a_us = difference.is_per_step ? mean(*cost, difference.a) : time(*cost);
    difference.only_a.push_back(std::move(change));
  }
}

}  // namespace

Result<MeasuredDifference> CompareProfiles(const MeasuredSide& a, const MeasuredSide& b) {
  ASSIGN_OR_RETURN(const ShapeCosts of_a, AskShapes(a));
  ASSIGN_OR_RETURN(const ShapeCosts of_b, AskShapes(b));
  const bool by_device = HasDeviceTime(of_a) && HasDeviceTime(of_b);
  MeasuredDifference difference;
  difference.has_logs = false;
  difference.a = TimesOf(of_a, by_device);
  difference.b = TimesOf(of_b, by_device);
  difference.is_per_step = difference.a.steps > 0 && difference.b.steps > 0;
  Compare(of_a.kernels, of_b.kernels, MeasuredKind::kKernel, false, difference);
  Compare(of_a.ops, of_b.ops, MeasuredKind::kOp, by_device, difference);
  FinishMeasured(difference);
  return difference;
}

}  // namespace tlparse
