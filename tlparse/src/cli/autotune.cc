// tlparse autotune <db>: what the compiler tuned, and which choices won.
#include "facts/compiles/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/commands.h"
#include "cli/rank_answer.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/ranks/asked_part.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

std::string TimeText(const std::optional<double>& ms) { return ms ? HumanDuration(*ms / 1e3) : ""; }

// "×1.15 triton_mm_1, place 2"
std::string TritonText(const TunedChoice& choice) {
  if (choice.triton_place.value_or(1) == 1 || !choice.triton_ms || choice.best_ms.value_or(0) <= 0)
    return "";
  return fmt::format("×{:.2f} {}, place {}", *choice.triton_ms / *choice.best_ms, choice.triton,
                     *choice.triton_place);
}

// Ranks that chose the same are one row, with the times of the rank on which the choice is slowest.
void PrintKernels(const AutotuneAnswer& answer) {
  using Align = Table::Align;
  Table table({{"compile"},
               {"kernel"},
               {"shapes", Align::kLeft, 1},
               {"ranks"},
               {"tried", Align::kRight},
               {"chosen"},
               {"time", Align::kRight},
               {"Triton", Align::kLeft, 2},
               {"took", Align::kRight}});
  for (const TunedKernel& kernel : answer.kernels) {
    std::map<std::string, std::vector<const TunedChoice*>> by_choice;
    std::vector<std::string> order;
    for (const TunedChoice& choice : kernel.on_ranks) {
      std::vector<const TunedChoice*>& alike = by_choice[choice.Key()];
      if (alike.empty()) order.push_back(choice.Key());
      alike.push_back(&choice);
    }
    for (const std::string& key : order) {
      const std::vector<const TunedChoice*>& alike = by_choice[key];
      std::vector<RankIndex> ranks;
      double took_s = 0;
      const TunedChoice* slowest = alike.front();
      for (const TunedChoice* const one : alike) {
        ranks.push_back(one->rank);
        took_s = std::max(took_s, one->precompile_s + one->benchmark_s);
        if (one->best_ms > slowest->best_ms) slowest = one;
      }
      table.Add({answer.Title(kernel.slot), kernel.kernel, Shorten(kernel.shapes, 40),
                 answer.job.FormatRanks(ranks),
                 slowest->choices ? std::to_string(*slowest->choices) : "",
                 kernel.is_at_run_time ? "(at run time)" : slowest->best,
                 TimeText(slowest->best_ms), TritonText(*slowest), HumanDuration(took_s)});
    }
  }
  table.Print();
}

void PrintFailed(const AutotuneAnswer& answer, bool all) {
  const std::size_t most =
      all ? answer.failed.size() : std::min<std::size_t>(answer.failed.size(), 5);
  if (most > 0) std::fputc('\n', stdout);
  for (std::size_t i = 0; i < most; ++i) {
    const FailedChoice& one = answer.failed[i];
    PrintWrapped(
        fmt::format("failed in {} of {}{}: {}: {}", one.kernel, answer.Title(one.slot),
                    answer.job.HasSeveral() ? " on " + RanksText(answer.job, one.ranks) : "",
                    Shorten(one.choice, 160), Shorten(one.message, 240)),
        0, 2);
  }
  if (answer.failed.size() > most)
    PrintWrapped(fmt::format("and {} more (--all)", answer.failed.size() - most), 0, 2);
}

void PrintShare(const AutotuneAnswer& answer) {
  if (!answer.only.empty() && answer.members.empty()) return;
  RankIndex slowest = answer.only.empty() ? 0 : answer.members.front();
  for (std::size_t i = 1; answer.only.empty() && i < answer.job.participants().size(); ++i)
    if (answer.TuningSeconds(static_cast<RankIndex>(i)) > answer.TuningSeconds(slowest))
      slowest = static_cast<RankIndex>(i);
  const double tuned_s = answer.TuningSeconds(slowest);
  const std::optional<double> compile_s = CompileSeconds(answer.job, slowest);
  if (tuned_s <= 0) return;
  PrintWrapped(
      fmt::format("tuning took {}{}{}", HumanDuration(tuned_s),
                  compile_s ? " of " + HumanDuration(*compile_s) + " of compiles" : "",
                  answer.job.HasSeveral() && answer.only.empty()
                      ? ", of " + RanksText(answer.job, {slowest}) + ", which tuned longest"
                      : ""),
      0, 2);
}

void PrintAutotune(const AutotuneAnswer& answer, bool all) {
  PrintHeading(fmt::format("{}: {}", answer.job.Title(),
                           Count(answer.job.participants().size(), "participant")));
  if (!answer.only.empty()) PrintWrapped(answer.only, 0, 2);
  if (answer.kernels.empty() && answer.failed.empty()) {
    PrintWrapped(
        "no kernel was tuned: mode=\"max-autotune\" and TORCHINDUCTOR_MAX_AUTOTUNE=1 tune; what is "
        "taken from the cache of an earlier run is in no log",
        0, 2);
    return;
  }
  if (!answer.kernels.empty()) PrintKernels(answer);
  PrintFailed(answer, all);
  PrintShare(answer);
}

}  // namespace

template <>
struct FieldsOf<TunedChoice> {
  using Of = TunedChoice;
  static constexpr FieldList list{
      Field{"rank", kNameOfRank, "the rank, or a participant without one by name"},
      Field{"choices", &Of::choices, "that were timed; null: the log does not say"},
      Field{"triton_choices", &Of::triton_choices},
      Field{"best", OrNull{&Of::best}, "the choice that was fastest"},
      Field{"best_description", OrNull{&Of::best_description}, "its configuration"},
      Field{"best_ms", &Of::best_ms},
      Field{"triton_place", &Of::triton_place,
            "place of the best choice of Triton among all: 1 is the fastest"},
      Field{"triton", OrNull{&Of::triton}, "the best choice of Triton"},
      Field{"triton_description", OrNull{&Of::triton_description}},
      Field{"triton_ms", &Of::triton_ms},
      Field{"precompile_seconds", &Of::precompile_s, "waited for the choices to be compiled"},
      Field{"benchmark_seconds", &Of::benchmark_s},
      Field{"record_id", &Of::record_id},
  };
};

template <>
struct FieldsOf<TunedKernel> {
  using Of = TunedKernel;
  static constexpr FieldList list{
      Field{"compile",
            [](const Of& of, const AutotuneAnswer& in) -> std::optional<std::string> {
              if (of.slot < 0) return std::nullopt;
              return in.Title(of.slot);
            }},
      Field{"kernel", &Of::kernel, "the operator, or a kernel of Triton tuned at run time"},
      Field{"is_at_run_time", &Of::is_at_run_time,
            "its configurations were run when it was first called; the log does not say which won"},
      Field{"shapes", OrNull{&Of::shapes}, "of its inputs"},
      Field{"strides", OrNull{&Of::strides}},
      Field{"dtypes", OrNull{&Of::dtypes}},
      Field{"on_ranks", &Of::on_ranks},
  };
};

template <>
struct FieldsOf<FailedChoice> {
  using Of = FailedChoice;
  static constexpr FieldList list{
      Field{"compile",
            [](const Of& of, const AutotuneAnswer& in) -> std::optional<std::string> {
              if (of.slot < 0) return std::nullopt;
              return in.Title(of.slot);
            }},
      Field{"kernel", &Of::kernel},
      Field{"choice", OrNull{&Of::choice}, "its configuration"},
      Field{"exception", OrNull{&Of::exception}},
      Field{"message", OrNull{&Of::message}},
      Field{"is_out_of_memory", &Of::is_out_of_memory,
            "it needs more than the device has: shared memory, registers"},
      Field{"ranks", Participants{&Of::ranks}},
  };
};

template <>
struct FieldsOf<AutotuneAnswer> {
  using Of = AutotuneAnswer;
  static constexpr std::string_view description =
      "The choices that the compiler timed for each kernel. A log has the times of the fastest "
      "choice and of the fastest one of Triton only.";
  static constexpr FieldList list{
      Inlined{&Of::job},
      Missable{"only", OrNull{&Of::only}, kOnly},
      Field{"kernels", &Of::kernels},
      Field{"failed", &Of::failed, "choices that could not be compiled"},
  };
};

std::string AutotuneSchema() {
  return SchemaOf<AutotuneAnswer, AutotuneAnswer>("tlparse autotune --json");
}

int RunAutotune(std::span<const std::string> arguments) {
  Arguments app(
      "The kernels whose choices the compiler timed (max-autotune): how many it tried, which one "
      "won and how fast it was, which could not be compiled and why, how long it took. Ranks that "
      "chose the same share a line.",
      "autotune");
  AutotuneOptions options;
  AskedPart part;
  return RunRankAnswer(
      app, arguments, "every choice that failed", options.run, options.launch, part,
      [&](Database& database, bool) -> Result<AutotuneAnswer> {
        ASSIGN_OR_RETURN(AutotuneAnswer answer, AnalyzeAutotune(database, options));
        answer.only = KeepAsked(part.asked, answer);
        return answer;
      },
      [](const AutotuneAnswer& answer) { return ToJson(answer, answer); }, PrintAutotune);
}

}  // namespace tlparse
