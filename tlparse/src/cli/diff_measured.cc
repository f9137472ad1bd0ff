#include "cli/diff_measured.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

// Less than a tenth is noise as often as not.
bool IsSlower(const MeasuredChange& change) { return change.b_us > change.a_us * 1.1; }

std::string Growth(double a, double b) {
  return a > 0 ? fmt::format("{:+.0f} %", 100 * (b / a - 1)) : std::string();
}

std::string Percent(double part, double all) {
  return fmt::format("{:.0f} %", 100 * part / std::max(all, 1e-9));
}

std::string GraphOf(const MeasuredChange& kernel) {
  if (kernel.label.empty()) return {};
  return fmt::format(" in {} {}{}", kernel.label, kernel.direction,
                     kernel.slot > 0 ? fmt::format(" {}", kernel.slot + 1) : std::string());
}

std::string Subject(const MeasuredChange& change) {
  if (change.kind == MeasuredKind::kLine) return fmt::format("{}:{}", change.file, change.line);
  constexpr std::size_t kShown = 48;
  std::string name = ShortenMiddle(change.name, kShown);
  if (!change.a_name.empty()) name = ShortenMiddle(change.a_name, kShown) + " → " + name;
  if (change.label.empty() && !change.shapes.empty()) name += " " + Shorten(change.shapes, 60);
  return name + GraphOf(change);
}

std::string Remark(const MeasuredChange& change) {
  if (change.kind == MeasuredKind::kLine) return change.name;
  if (change.kind == MeasuredKind::kOp || change.label.empty()) return {};
  std::string text = change.has_other_code ? "the generated code of its graph differs (--code)"
                                           : "the same generated code";
  if (change.has_symbols) text += "; its sizes are symbols and may differ";
  return text;
}

// How long the sides took, and what of that was compared.
void PrintCoverage(const MeasuredDifference& measured, const Whose& whose) {
  const MeasuredSideTimes &a = measured.a, &b = measured.b;
  PrintWrapped(
      fmt::format("measured: a{} {}{}, b{} {}{}{}; kernels {} and {}", whose.a,
                  HumanMicroseconds(a.window_us), measured.is_per_step ? " per step" : " in all",
                  whose.b, HumanMicroseconds(b.window_us),
                  measured.is_per_step ? " per step" : " in all",
                  measured.is_per_step ? fmt::format(" ({})", Growth(a.window_us, b.window_us))
                                       : std::string(),
                  HumanMicroseconds(a.kernel_us), HumanMicroseconds(b.kernel_us)),
      0, 2);
  if (!measured.has_logs)
    PrintWrapped(
        "without logs of both sides kernels are compared by name and by the shapes of the op that "
        "enqueued them, ops by name and shapes",
        2, 2);
  std::string text;
  const auto add = [&](const MeasuredCoverage& part, std::string_view what, double a_us,
                       double b_us, std::string_view of) {
    if (part.count == 0) return;
    text += fmt::format("{}{} ({} of the {} of a, {} of b)", text.empty() ? "" : "; ",
                        Count(static_cast<std::size_t>(part.count), what), Percent(part.a_us, a_us),
                        of, Percent(part.b_us, b_us));
  };
  add(measured.lines, "line", a.kernel_us, b.kernel_us, "kernel time");
  add(measured.kernels, "kernel", a.kernel_us, b.kernel_us, "kernel time");
  add(measured.ops, "op", a.op_us, b.op_us, "ops' time");
  PrintWrapped(text.empty() ? "compared: nothing, no line and no kernel is on both sides"
                            : "compared: " + text,
               2, 4);
}

// How much of what the devices ran came from CUDA graphs.
void PrintReplays(const MeasuredDifference& measured) {
  if (measured.a.replays == 0 && measured.b.replays == 0) return;
  std::string text = "on devices, from CUDA graphs:";
  for (const bool is_b : {false, true}) {
    const MeasuredSideTimes& side = is_b ? measured.b : measured.a;
    text += is_b ? ", b " : " a ";
    if (side.replays == 0) {
      text += fmt::format("none of {}", HumanMicroseconds(side.device_us));
      continue;
    }
    text += fmt::format("{} of {} ({:.1f} %), {:.4g} {}{}", HumanMicroseconds(side.graph_us),
                        HumanMicroseconds(side.device_us),
                        100 * side.graph_us / std::max(side.device_us, 1e-9), side.replays,
                        side.replays == 1 ? "replay" : "replays",
                        measured.is_per_step ? " per step" : "");
  }
  PrintWrapped(text, 2, 4);
}

void PrintOnly(const MeasuredDifference& measured, bool is_b, MeasuredKind kind, bool all) {
  constexpr std::size_t kMost = 3;
  double us = 0;
  std::size_t count = 0;
  std::string names;
  for (const MeasuredChange& change : is_b ? measured.only_b : measured.only_a) {
    if (change.kind != kind) continue;
    us += is_b ? change.b_us : change.a_us;
    if (!all && count >= kMost) {
      ++count;
      continue;
    }
    names += fmt::format("{} {} {}", count++ == 0 ? ":" : ",", Subject(change),
                         HumanMicroseconds(is_b ? change.b_us : change.a_us));
  }
  if (count == 0) return;
  std::string text =
      fmt::format("only in {}: {}, {}{}{}", is_b ? "b" : "a",
                  Count(count, kind == MeasuredKind::kOp ? "op" : "kernel"), HumanMicroseconds(us),
                  measured.is_per_step ? " per step" : "", names);
  if (!all && count > kMost) text += fmt::format(" and {} more (--all)", count - kMost);
  PrintWrapped(text, 2, 4);
}

void PrintUnknown(const MeasuredDifference& measured) {
  if (measured.unknown_a == 0 && measured.unknown_b == 0) return;
  PrintWrapped(
      fmt::format("not compared: {} of a ({}) and {} of b ({}): the logs do not say what they "
                  "compute",
                  Count(static_cast<std::size_t>(measured.unknown_a), "kernel"),
                  HumanMicroseconds(measured.unknown.a_us),
                  Count(static_cast<std::size_t>(measured.unknown_b), "kernel"),
                  HumanMicroseconds(measured.unknown.b_us)),
      2, 4);
}

void PrintUnrecorded(const MeasuredDifference& measured) {
  for (const bool is_b : {false, true}) {
    const std::int64_t count = is_b ? measured.unrecorded_b : measured.unrecorded_a;
    if (count == 0) continue;
    PrintWrapped(
        fmt::format("not compared: {} of {} ({}{}): the profiles of {} have no C++ kernels (they "
                    "are recorded with_stack=True)",
                    Count(static_cast<std::size_t>(count), "C++ kernel"), is_b ? "b" : "a",
                    HumanMicroseconds(is_b ? measured.unrecorded.b_us : measured.unrecorded.a_us),
                    measured.is_per_step ? " per step" : "", is_b ? "a" : "b"),
        2, 4);
  }
}

// The text in place of an empty table.
std::string NothingSlower(const MeasuredDifference& measured) {
  if (measured.changes.empty()) return {};
  if (!measured.IsFair())
    return "nothing of that takes more than a tenth longer, but it is too little of the time to "
           "say what does";
  const bool is_longer = measured.is_per_step && measured.b.window_us > measured.a.window_us * 1.1;
  return fmt::format("nothing of that takes more than a tenth longer{}",
                     is_longer ? ": what makes the step longer is not among it" : "");
}

}  // namespace

void PrintMeasured(const MeasuredDifference& measured, const Whose& whose, bool all) {
  using Align = Table::Align;
  const std::string mean = measured.is_per_step ? " per step" : " per call";
  Table table({{"slower"},
               {"a" + whose.a + mean, Align::kRight},
               {"b" + whose.b + mean, Align::kRight},
               {"change", Align::kRight},
               {"of"},
               {"code"}});
  constexpr std::string_view kKinds[] = {"line", "kernel", "op"};
  constexpr std::size_t kMost = 10;
  std::size_t count = 0, left_out = 0;
  for (const MeasuredChange& change : measured.changes) {
    if (!IsSlower(change)) continue;
    if (!all && ++count > kMost) {
      ++left_out;
      continue;
    }
    table.Add({std::string(kKinds[static_cast<std::size_t>(change.kind)]),
               HumanMicroseconds(change.a_us), HumanMicroseconds(change.b_us),
               Growth(change.a_us, change.b_us), Subject(change), Remark(change)});
  }
  std::fputc('\n', stdout);
  PrintCoverage(measured, whose);
  PrintReplays(measured);
  if (table.empty()) {
    if (const std::string text = NothingSlower(measured); !text.empty()) PrintWrapped(text, 2, 4);
  } else {
    table.Print();
    if (left_out > 0) PrintWrapped(fmt::format("and {} more (--all)", left_out), 2, 4);
  }
  for (const MeasuredKind kind : {MeasuredKind::kKernel, MeasuredKind::kOp}) {
    PrintOnly(measured, false, kind, all);
    PrintOnly(measured, true, kind, all);
  }
  PrintUnrecorded(measured);
  PrintUnknown(measured);
}

}  // namespace tlparse
