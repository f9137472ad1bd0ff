#include "cli/vllm_start_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/rank_output.h"
#include "cli/terminal.h"

namespace tlparse {
namespace {

std::string BasisText(const StartStage& stage) {
  switch (stage.basis) {
    case StartBasis::kSaid:
      return fmt::format("line {}", stage.line);
    case StartBasis::kClock:
      return fmt::format("clock, to line {}", stage.line);
    case StartBasis::kTrace:
      return "compiles in its log";
    case StartBasis::kRest:
      break;
  }
  return {};
}

std::string TimeText(const StartStage& stage) {
  // No more digits than a clock of whole seconds has.
  return stage.basis == StartBasis::kClock ? fmt::format("{:.0f} s", stage.seconds)
                                           : HumanDuration(stage.seconds);
}

// Indented below the stage that it is within.
std::string NameText(const StartStage& stage, std::map<std::string_view, std::size_t>& depth) {
  const std::size_t own = stage.within.empty() ? 0 : depth[stage.within] + 1;
  depth[stage.name] = own;
  std::string name = std::string(2 * own + 2, ' ') + std::string(stage.name);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void Print(const VllmStart& start) {
  const bool has_begin =
      !start.stages.empty() && start.stages.front().name == kStageBeforeFirstLine;
  PrintWrapped(
      fmt::format("start of vLLM: {} from {} to {} in {}; stages of {}",
                  HumanDuration(start.seconds),
                  has_begin ? "the start of its process" : "its first line, " + start.began,
                  start.ended, start.path,
                  start.worker_pid ? fmt::format("{} pid {}", start.worker, *start.worker_pid)
                                   : std::string("the process")),
      0, 2);
  Table table({{"stage"}, {"time", Table::Align::kRight}, {"from", Table::Align::kLeft, 1}, {""}});
  std::map<std::string_view, std::size_t> depth;
  for (const StartStage& stage : start.stages)
    table.Add({NameText(stage, depth), TimeText(stage), BasisText(stage), stage.note});
  table.Print();
}

}  // namespace

void PrintVllmStarts(const std::vector<VllmStart>& starts) {
  for (const VllmStart& start : starts) {
    std::puts("");
    Print(start);
  }
}

void PrintVllmStartDifference(const VllmStart& a, const VllmStart& b) {
  PrintWrapped(
      fmt::format("start of vLLM: a {}, b {}", HumanDuration(a.seconds), HumanDuration(b.seconds)),
      0, 2);
  using Align = Table::Align;
  Table table({{"stage"}, {"a", Align::kRight}, {"b", Align::kRight}, {"more", Align::kRight}});
  std::vector<StartStage> all = a.stages;
  const auto find = [](auto& stages, const StartStage& like) {
    return std::find_if(stages.begin(), stages.end(), [&](const StartStage& one) {
      return one.name == like.name && one.within == like.within;
    });
  };
  // Those of b alone behind the stage that precedes them there.
  auto after = all.begin();
  for (const StartStage& stage : b.stages) {
    const auto known = find(all, stage);
    after = known == all.end() ? all.insert(after, stage) + 1 : known + 1;
  }
  std::map<std::string_view, std::size_t> depth;
  for (const StartStage& stage : all) {
    const auto of_a = find(a.stages, stage), of_b = find(b.stages, stage);
    const bool has_a = of_a != a.stages.end(), has_b = of_b != b.stages.end();
    const double more = (has_b ? of_b->seconds : 0) - (has_a ? of_a->seconds : 0);
    table.Add({NameText(stage, depth), has_a ? TimeText(*of_a) : "", has_b ? TimeText(*of_b) : "",
               has_a && has_b ? fmt::format("{:+.1f} s", more) : ""});
  }
  table.Print();
  for (const bool is_b : {false, true}) {
    for (const StartStage& stage : (is_b ? b : a).stages)
      if (!stage.note.empty())
        PrintWrapped(fmt::format("{}: {}", is_b ? "b" : "a", stage.note), 2, 4);
  }
}

}  // namespace tlparse
