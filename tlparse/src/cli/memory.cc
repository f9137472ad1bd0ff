// tlparse memory <db>: who holds the memory.
#include "facts/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "artifacts/common/text/python_traceback.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/memory_output.h"
#include "cli/rank_output.h"
#include "cli/shares.h"
#include "cli/terminal.h"
#include "facts/compiles/user_frames.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

constexpr std::pair<std::string_view, MemoryBy> kMemoryQuestions[] = {
    {"line", MemoryBy::kLine},         {"graph", MemoryBy::kGraph}, {"node", MemoryBy::kNode},
    {"category", MemoryBy::kCategory}, {"stack", MemoryBy::kStack},
};
constexpr std::pair<std::string_view, MemoryAt> kMoments[] = {
    {"peak", MemoryAt::kPeak},
    {"oom", MemoryAt::kOom},
    {"end", MemoryAt::kEnd},
};

// "+1.5ms": since the first event. False: it is no such time.
bool ParseOffset(std::string_view text, std::int64_t& offset_us) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  constexpr double kMostUs = 1e15;
  for (const auto& [unit, us] : {std::pair("s", 1e6), std::pair("ms", 1e3), std::pair("us", 1.0)}) {
    if (error != std::errc() || std::string_view(end, static_cast<std::size_t>(last - end)) != unit)
      continue;
    if (!(number >= 0 && number * us < kMostUs)) return false;
    offset_us = std::llround(number * us);
    return true;
  }
  return false;
}

// False: `at` is no moment.
bool ParseMoment(const std::string& at, MemoryOptions& options) {
  for (const auto& [name, moment] : kMoments) {
    if (at != name) continue;
    options.at = moment;
    return true;
  }
  if (at.starts_with('+')) {
    options.at = MemoryAt::kTime;
    return ParseOffset(std::string_view(at).substr(1), options.offset_us);
  }
  options.at = MemoryAt::kStep;
  const auto [end, error] = std::from_chars(at.data(), at.data() + at.size(), options.step);
  return error == std::errc() && end == at.data() + at.size() && options.step >= 0;
}

std::string PartOf(std::int64_t bytes, std::int64_t all) {
  return PartText(HumanBytes(bytes), static_cast<double>(bytes), static_cast<double>(all));
}

std::string DeviceTitle(const MemoryDevice& device) {
  std::string title = device.path.substr(device.path.rfind('/') + 1);
  if (device.rank) title += fmt::format(", rank {}", *device.rank);
  if (device.kind == "kineto") title += fmt::format(", {}", device.source);
  if (device.device || device.kind != "kineto") title += fmt::format(", {}", MemoryName(device));
  return title;
}

// ", 1.25 ms after the first"
std::string SinceFirst(const MemoryDevice& device) {
  if (!device.time_us || !device.start_us) return {};
  return fmt::format(", {} after the first",
                     HumanMicroseconds(static_cast<double>(*device.time_us - *device.start_us)));
}

std::string MomentText(const MemoryDevice& device, MemoryAt at, std::int64_t step) {
  switch (at) {
    case MemoryAt::kPeak:
      return device.ordinal < 0
                 ? std::string("at the peak, before the first event")
                 : fmt::format("at the peak, after event {} of {}{}", device.ordinal + 1,
                               device.event_count, SinceFirst(device));
    case MemoryAt::kOom:
      return fmt::format("when the allocation failed, at event {} of {}", device.ordinal + 1,
                         device.event_count);
    case MemoryAt::kStep:
      return fmt::format("after step {}", step);
    case MemoryAt::kTime:
      return fmt::format("after event {} of {}{}", device.ordinal + 1, device.event_count,
                         SinceFirst(device));
    case MemoryAt::kEnd:
      break;
  }
  return fmt::format("after the last of {}",
                     Count(static_cast<std::size_t>(device.event_count), "event"));
}

void PrintSegments(const MemorySegments& segments) {
  const std::int64_t all = segments.reserved_bytes;
  PrintLine(
      fmt::format("the allocator held {} at the end: {} in blocks in use, {} lost to "
                  "rounding, {} in unused segments (empty_cache() gives them back), {} "
                  "unused between blocks in use; its largest unused block is {}",
                  HumanBytes(all), PartOf(segments.requested_bytes, all),
                  PartOf(segments.rounding_bytes, all), PartOf(segments.free_bytes, all),
                  PartOf(segments.fragmented_bytes, all), HumanBytes(segments.largest_free_bytes)),
      2);
}

std::string SubjectOf(const MemoryRow& row, MemoryBy by) {
  const std::string graph =
      row.direction.empty() ? row.label : fmt::format("{} {}", row.label, row.direction);
  switch (by) {
    case MemoryBy::kCategory:
      return row.category;
    case MemoryBy::kGraph:
      return graph.empty() ? fmt::format("({})", row.reason) : graph;
    case MemoryBy::kNode:
      if (!row.nodes.empty()) return fmt::format("{}: {}", graph, row.nodes);
      return graph.empty() ? fmt::format("({})", row.reason)
                           : fmt::format("({}: {})", graph, row.reason);
    case MemoryBy::kLine:
    case MemoryBy::kStack:
      break;
  }
  if (!row.file.empty()) return fmt::format("{}:{}", row.file, row.line.value_or(0));
  if (!graph.empty()) return fmt::format("({}: {})", graph, row.reason);
  return fmt::format("({})", row.reason.empty() ? "no Python line outside PyTorch" : row.reason);
}

// What would lower the peak, if it were freed earlier.
void PrintFreed(const MemoryDevice& device, MemoryBy by) {
  constexpr std::size_t kShownFreed = 3;
  const MemoryFreed& freed = *device.freed;
  if (freed.lower_peak_bytes >= device.alive_bytes) return;
  std::string line = fmt::format("freed before the next allocation: {}",
                                 PartOf(freed.size_bytes, device.alive_bytes));
  for (std::size_t i = 0; i < std::min(kShownFreed, freed.rows.size()); ++i)
    line += fmt::format("{} {} of {}", i == 0 ? ":" : ",", HumanBytes(freed.rows[i].size_bytes),
                        SubjectOf(freed.rows[i], by));
  if (freed.rows.size() > kShownFreed)
    line += fmt::format(", and {} more (--json)", freed.rows.size() - kShownFreed);
  PrintLine(line + fmt::format("; freed before the allocation that made the peak (if that does not "
                               "read it), the peak would be {}",
                               HumanBytes(freed.lower_peak_bytes)),
            2);
}

// What was alive after the last steps, and what grew in each of them.
void PrintSteps(const MemoryDevice& device, MemoryBy by) {
  constexpr std::size_t kShownSteps = 6, kShownGrowth = 3;
  const std::size_t first = device.steps.size() - std::min(kShownSteps, device.steps.size());
  std::string line = "after step ";
  for (std::size_t i = first; i < device.steps.size(); ++i)
    line += fmt::format("{}{}: {}", i == first ? "" : ", ", device.steps[i].step,
                        HumanBytes(device.steps[i].alive_bytes));
  PrintLine(line, 2);
  if (device.growing_steps == 0) return;
  const std::string last = fmt::format("the last {} steps", device.growing_steps);
  if (device.growth.empty()) PrintLine(fmt::format("nothing grew in each of {}", last), 2);
  for (std::size_t i = 0; i < std::min(kShownGrowth, device.growth.size()); ++i) {
    const MemoryGrowth& growth = device.growth[i];
    const std::int64_t bytes = growth.alive.back().size_bytes - growth.alive.front().size_bytes;
    PrintLine(fmt::format("grew in each of {}, by {} a step: {}, now {}", last,
                          HumanBytes(bytes / static_cast<std::int64_t>(device.growing_steps)),
                          SubjectOf(growth.row, by), HumanBytes(growth.alive.back().size_bytes)),
              2);
  }
  if (device.growth.size() > kShownGrowth)
    PrintLine(fmt::format("and {} more grew (--json)", device.growth.size() - kShownGrowth), 2);
}

void PrintDevice(const MemoryDevice& device, const MemoryOptions& options) {
  const MemoryAt at = options.at;
  std::string line =
      fmt::format("{}: {} alive {}", DeviceTitle(device), HumanBytes(device.alive_bytes),
                  MomentText(device, at, options.step));
  if (device.reserved_bytes)
    line += fmt::format("; the allocator held {}", HumanBytes(*device.reserved_bytes));
  else if (device.segments && at == MemoryAt::kPeak)
    line += "; what the allocator held then was not recorded";
  PrintLine(line, 0);
  const std::string functions =
      device.function_bytes == 0 ? std::string()
                                 : fmt::format(", {} a function of which no frame names the line",
                                               PartOf(device.function_bytes, device.alive_bytes));
  PrintLine(fmt::format("{} have a Python line{}, {} belong to a compiled graph or region, {} to a "
                        "line or graph",
                        PartOf(device.line_bytes, device.alive_bytes), functions,
                        PartOf(device.graph_bytes, device.alive_bytes),
                        PartOf(device.named_bytes, device.alive_bytes)),
            2);
  if (at != MemoryAt::kPeak)
    PrintLine(fmt::format("the peak was {}", HumanBytes(device.peak_bytes)), 2);
  if (device.failed) {
    const FailedAllocation& failed = *device.failed;
    PrintLine(
        fmt::format(
            "an allocation of {} failed{}{}", HumanBytes(failed.size_bytes),
            failed.file.empty() ? std::string()
                                : fmt::format(" at {}:{}", failed.file, failed.line.value_or(0)),
            failed.device_free_bytes
                ? fmt::format(": the device had {} free", HumanBytes(*failed.device_free_bytes))
                : std::string()),
        2);
  }
  if (device.segments) PrintSegments(*device.segments);
  if (device.freed) PrintFreed(device, options.by);
  if (!device.steps.empty()) PrintSteps(device, options.by);
}

// Names of C++ templates take thousands of characters: --json has all of them.
constexpr std::size_t kLongestCell = 120;

// "layers.py:105 < model.py:30"
std::string CallersText(const std::vector<std::string>& frames) {
  std::string callers;
  for (const std::string& frame : frames) {
    const std::size_t end = frame.find(".py:");
    if (end == frame.npos) continue;
    const std::size_t slash = frame.rfind('/', end);
    callers +=
        (callers.empty() ? "" : " < ") + (slash == frame.npos ? frame : frame.substr(slash + 1));
  }
  return callers;
}

bool HasLine(MemoryBy by) { return by == MemoryBy::kLine || by == MemoryBy::kStack; }

std::vector<std::string> MemoryCells(const MemoryRow& row, MemoryBy by) {
  std::vector<std::string> cells = {Percent(row.share), HumanBytes(row.size_bytes),
                                    std::to_string(row.allocations)};
  if (by != MemoryBy::kCategory) cells.push_back(row.category);
  cells.push_back(SubjectOf(row, by));
  if (HasLine(by)) cells.push_back(Shorten(row.function, kLongestCell));
  if (by == MemoryBy::kNode) cells.push_back(row.kernel);
  if (by == MemoryBy::kStack) cells.push_back(Shorten(CallersText(row.frames), kLongestCell));
  return cells;
}

// Of rows by stack.
void PrintMemoryStacks(const MemoryDevice& device, std::size_t top) {
  ShownStacks stacks;
  for (std::size_t i = 0; i < std::min(top, device.rows.size()); ++i) {
    const MemoryRow& row = device.rows[i];
    std::string frames;
    for (const std::string& frame : row.frames) {  // "/job/train.py:9 step"
      const std::size_t space = frame.find(' ', std::min(frame.find(".py:"), frame.size()));
      if (space == frame.npos || !IsUserFile(frame.substr(0, frame.rfind(':', space)))) continue;
      const std::string place = frame.substr(0, space);
      frames += fmt::format("{}{} in{}", frames.empty() ? "" : ", ",
                            place.substr(place.rfind('/') + 1), frame.substr(space));
    }
    stacks.Add(HumanBytes(row.size_bytes), frames);
  }
  for (const std::string& stack : stacks.lines()) PrintWrapped(stack, 0, 2);
}

void PrintMemoryRows(const MemoryDevice& device, MemoryBy by, std::size_t top) {
  std::vector<Table::Column> columns = ShareHeadings("alive");
  columns.push_back({"blocks", Table::Align::kRight});
  const bool has_line = HasLine(by);
  if (by != MemoryBy::kCategory) columns.push_back({"category", Table::Align::kLeft, 1});
  columns.push_back({by == MemoryBy::kGraph      ? "graph"
                     : by == MemoryBy::kNode     ? "node"
                     : by == MemoryBy::kCategory ? "category"
                                                 : "line",
                     Table::Align::kLeft, 0, has_line});
  if (has_line) columns.push_back({"function"});
  if (by == MemoryBy::kNode) columns.push_back({"kernel"});
  if (by == MemoryBy::kStack) columns.push_back({"stack, innermost first", Table::Align::kLeft, 1});
  Table table(columns);
  AddShares(table, device.rows, top, [&](const MemoryRow& row) { return MemoryCells(row, by); });
  if (!table.empty()) table.Print();
  PrintMore(device.rows.size(), top);
}

void PrintMemory(const MemoryAnswer& answer, const MemoryOptions& options, std::size_t count,
                 bool stack) {
  for (const MemoryDevice& device : answer.devices) {
    if (&device != &answer.devices.front()) std::fputc('\n', stdout);
    PrintDevice(device, options);
    PrintMemoryRows(device, options.by, count);
    if (stack) PrintMemoryStacks(device, count);
  }
  for (const std::string& note : answer.notes) PrintLine(note, 0);
}

}  // namespace

int RunMemory(std::span<const std::string> arguments) {
  Arguments app(
      "Who holds the memory, at the peak of each snapshot of the allocator and of each profile "
      "with memory events: by Python line (the innermost one outside PyTorch), by compiled graph, "
      "by graph node (of the kernel for which a line of generated code in the stack made the "
      "block), by category, or by stack. The rows of a device sum to what is alive. Sizes are "
      "those that "
      "were asked for. A block lives until its free is completed.",
      "memory");
  AnswerArguments common;
  MemoryOptions options;
  std::string by = "line", at = "peak";
  std::optional<std::string> run;
  bool stack = false;
  int top = 20;
  AddAnswerArguments(app, common);
  app.Add("--by", by, "line, graph, node, category or stack")
      .OneOf(NamesOf(kMemoryQuestions))
      .ShowDefault();
  app.Add(
         "--at", at,
         "peak; oom: when an allocation failed; end: after the last event; a number: at the end of "
         "this step of the profiler; +TIME, like +1.5s or +20ms: so long after the first event of "
         "each recording")
      .ShowDefault();
  AddAsked(app, options.asked);
  Arguments::Option most = app.Add("--top", top, "maximum number of rows of a device");
  most.Positive().ShowDefault();
  app.Flag("--stack", stack, "as --by stack, with all of the user's frames below the rows");
  app.Add("--run", run, "the run of this name (default: the latest)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (stack) by = "stack";
  options.by = ValueOf(kMemoryQuestions, by);
  if (!ParseMoment(at, options)) {
    std::fprintf(
        stderr,
        "tlparse: --at takes peak, oom, end, the number of a step or a time like +20ms, not '%s'\n",
        Printable(at).c_str());
    return kExitUsage;
  }
  const auto answer_from = [&](Database& database) -> Result<void> {
    ASSIGN_OR_RETURN(options.run_id, FindRun(database, run.value_or("")));
    RETURN_IF_ERROR(CheckAsked(database, options.asked, options.run_id, {}));
    ASSIGN_OR_RETURN(const MemoryAnswer answer, Memory(database, options));
    const auto count = static_cast<std::size_t>(top);
    if (common.json) {
      PrintJson(MemoryJson(answer, by, at, count));
      return {};
    }
    PrintBounded(most.WasGiven(), "--top", [&] { PrintMemory(answer, options, count, stack); });
    return {};
  };
  return AnswerFrom(common.database, answer_from);
}

}  // namespace tlparse
