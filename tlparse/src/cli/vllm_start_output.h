// Starts of vLLM as a table and as JSON; part of `tlparse history` and `diff`.
#pragma once

#include <vector>

#include "base/fields.h"
#include "facts/compiles/vllm_start.h"

namespace tlparse {

void PrintVllmStarts(const std::vector<VllmStart>& starts);
// Stage by stage, of `tlparse diff`.
void PrintVllmStartDifference(const VllmStart& a, const VllmStart& b);

template <>
struct FieldsOf<StartStage> {
  using Of = StartStage;
  static constexpr FieldList list{
      Field{"name", &Of::name, "as in vllm_stage; not_attributed: what no other part is"},
      Field{
          "within",
          [](const Of& of) { return of.within.empty() ? std::nullopt : std::optional(of.within); },
          "the stage that it is a part of; null: of the start"},
      Field{"seconds", &Of::seconds},
      Field{"basis", [](const Of& of) { return Name(of.basis); },
            "said by the line, clock: between two lines with whole seconds, trace: of the compiles "
            "in the log of the process, rest"},
      Field{"line", Positive{&Of::line}, "of the text, that says it or ends it"},
      Field{"note", OrNull{&Of::note}, "whether what an earlier start had compiled was loaded"},
  };
};

template <>
struct FieldsOf<VllmStart> {
  using Of = VllmStart;
  static constexpr FieldList list{
      Field{"run_id", &Of::run_id},
      Field{"path", &Of::path},
      Field{"engine", OrNull{&Of::engine}},
      Field{"engine_pid", &Of::engine_pid},
      Field{"worker", OrNull{&Of::worker}, "whose stages these are, of several the slowest"},
      Field{"worker_pid", &Of::worker_pid},
      Field{"began", &Of::began, "local time of the first line"},
      Field{"ended", &Of::ended, "local time of the line that ends it"},
      Field{"seconds", &Of::seconds, "sum of the stages that are within none"},
      Field{"stages", &Of::stages},
  };
};

template <>
struct FieldsOf<VllmStartPair> {
  using Of = VllmStartPair;
  static constexpr FieldList list{Field{"a", &Of::a}, Field{"b", &Of::b}};
};

}  // namespace tlparse
