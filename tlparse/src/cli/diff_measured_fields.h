// The JSON of what `tlparse diff` measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/fields.h"
#include "facts/diff/measured_difference.h"

namespace tlparse {

inline constexpr std::string_view kMeasuredKinds[] = {"line", "kernel", "op"};
inline constexpr std::string_view kUnits[] = {"step", "call"};

// What is not compared.
struct BothSides {
  std::int64_t a_count = 0, b_count = 0;
  double a_us = 0, b_us = 0;
};
struct Compared {
  MeasuredCoverage lines, kernels, ops;
  BothSides unknown, unrecorded;
};

inline Compared ComparedOf(const MeasuredDifference& of) {
  return {of.lines,
          of.kernels,
          of.ops,
          {of.unknown_a, of.unknown_b, of.unknown.a_us, of.unknown.b_us},
          {of.unrecorded_a, of.unrecorded_b, of.unrecorded.a_us, of.unrecorded.b_us}};
}

template <>
struct FieldsOf<MeasuredChange> {
  using Of = MeasuredChange;
  static constexpr std::string_view name = "measured_change";
  static constexpr FieldList list{
      Field{"kind", [](const Of& of) { return kMeasuredKinds[static_cast<std::size_t>(of.kind)]; },
            "", kMeasuredKinds},
      Field{"name", OrNull{&Of::name}, "of a kernel, with its handle; of a line its code"},
      Field{"a_name", OrNull{&Of::a_name},
            "kernels: the name in a where it is another; null: the same"},
      Field{"file", OrNull{&Of::file}},
      Field{"line",
            [](const Of& of) {
              return of.kind == MeasuredKind::kLine ? std::optional(of.line) : std::nullopt;
            },
            "in b"},
      Field{"label", OrNull{&Of::label}, "compile id of a kernel in b"},
      Field{"direction", OrNull{&Of::direction}},
      Field{"slot",
            [](const Of& of) {
              return of.kind == MeasuredKind::kKernel ? std::optional(of.slot) : std::nullopt;
            },
            "kernels: which of the graphs of this direction in its compile, 0-based"},
      Field{"shapes", OrNull{&Of::shapes},
            "kernels: operations and shapes by the generated code, which are the same on both "
            "sides; without logs, and of ops, the shapes that the profile recorded; null: unknown"},
      Field{"a_us", &Of::a_us},
      Field{"b_us", &Of::b_us},
      Field{"a_calls", &Of::a_calls},
      Field{"b_calls", &Of::b_calls},
      Field{"has_other_code", &Of::has_other_code,
            "kernels: the generated code of the graph differs"},
      Field{"has_symbols", &Of::has_symbols,
            "sizes of shapes are symbols: those of the calls may differ between the sides"},
  };
};

template <>
struct FieldsOf<MeasuredCoverage> {
  static constexpr std::string_view name = "measured_part";
  static constexpr FieldList list{
      Field{"count", &MeasuredCoverage::count},
      Field{"a_us", &MeasuredCoverage::a_us},
      Field{"b_us", &MeasuredCoverage::b_us},
  };
};

template <>
struct FieldsOf<BothSides> {
  static constexpr FieldList list{
      Field{"a_count", &BothSides::a_count},
      Field{"b_count", &BothSides::b_count},
      Field{"a_us", &BothSides::a_us},
      Field{"b_us", &BothSides::b_us},
  };
};

template <>
struct FieldsOf<Compared> {
  static constexpr FieldList list{
      Field{"lines", &Compared::lines},
      Field{"kernels", &Compared::kernels},
      Field{"ops", &Compared::ops},
      Field{"unknown", &Compared::unknown,
            "kernels of which the logs do not say what they compute: not compared"},
      Field{"unrecorded", &Compared::unrecorded,
            "C++ kernels of one side, where the profiles of the other side have no C++ kernel: not "
            "compared"},
  };
};

template <>
struct FieldsOf<MeasuredSideTimes> {
  using Of = MeasuredSideTimes;
  static constexpr std::string_view name = "measured_side";
  static constexpr std::string_view description =
      "times of what is counted of the side, of one step if unit is step";
  static constexpr FieldList list{
      Field{"steps", &Of::steps, "0: a profile marks none"},
      Field{"window_us", &Of::window_us},
      Field{"kernel_us", &Of::kernel_us, "sum of kernel runs"},
      Field{"op_us", &Of::op_us,
            "without logs: of ops, on devices if any enqueued device work on both sides, else on "
            "the CPU without the ops inside"},
      Field{"device_us", &Of::device_us, "of all kernels on devices"},
      Field{"graph_us", &Of::graph_us, "of these, those that replays of CUDA graphs ran"},
      Field{"replays", &Of::replays, "of CUDA graphs"},
  };
};

template <>
struct FieldsOf<MeasuredDifference> {
  using Of = MeasuredDifference;
  static constexpr FieldList list{
      Field{"unit", [](const Of& of) { return kUnits[of.is_per_step ? 0 : 1]; },
            "what a_us and b_us are means of", kUnits},
      Field{"has_logs", &Of::has_logs,
            "false: a side has no log: kernels are matched by name and by the shapes of the op "
            "that enqueued them; true: by what they compute, within the same graph of two compiles "
            "that are one"},
      Field{"a", &Of::a},
      Field{"b", &Of::b},
      Field{"compared", &ComparedOf,
            "how many lines, kernels and ops are on both sides, and their times"},
      Field{"is_fair", &Of::IsFair, "what was compared is at least half of the time of both sides"},
      Field{"changes", &Of::changes, "the greatest increase first"},
      Field{"only_a", &Of::only_a,
            "kernels that compute what none of the other side does (without logs kernels and ops "
            "of a name and shapes that it has not); b_us is 0"},
      Field{"only_b", &Of::only_b, "the same of side b; a_us is 0"},
  };
};

}  // namespace tlparse
