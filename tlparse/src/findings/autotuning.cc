// What autotuning chose otherwise on some ranks, what could not be compiled, and what it cost.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/human_duration.h"
#include "base/plural.h"
#include "facts/compiles/autotune.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// Times that are nearer than this are alike: measurements of one kernel differ by as much.
constexpr double kNoise = 1.1;

// Choices that won on different ranks, for one kernel: of each the rank on which it took longest.
struct OtherChoices {
  const TunedKernel* kernel = nullptr;
  const TunedChoice *fastest = nullptr, *slowest = nullptr;
  std::vector<RankIndex> of_fastest, of_slowest;

  double Ratio() const { return *slowest->best_ms / *fastest->best_ms; }
};

std::optional<OtherChoices> OtherChoicesOf(const TunedKernel& kernel) {
  std::map<std::string, std::vector<const TunedChoice*>> by_choice;
  for (const TunedChoice& choice : kernel.on_ranks) {
    if (!choice.best.empty() && choice.best_ms.value_or(0) > 0)
      by_choice[choice.Key()].push_back(&choice);
  }
  if (by_choice.size() < 2) return std::nullopt;
  OtherChoices others{&kernel, nullptr, nullptr, {}, {}};
  for (const auto& [key, choices] : by_choice) {
    const TunedChoice* const longest =
        *std::max_element(choices.begin(), choices.end(),
                          [](const auto* a, const auto* b) { return *a->best_ms < *b->best_ms; });
    if (others.fastest == nullptr || *longest->best_ms < *others.fastest->best_ms)
      others.fastest = longest;
    if (others.slowest == nullptr || *longest->best_ms >= *others.slowest->best_ms)
      others.slowest = longest;
  }
  for (const TunedChoice* const choice : by_choice[others.fastest->Key()])
    others.of_fastest.push_back(choice->rank);
  for (const TunedChoice* const choice : by_choice[others.slowest->Key()])
    others.of_slowest.push_back(choice->rank);
  return others;
}

// "addmm (131 µs)"
std::string ChoiceText(const TunedChoice& choice) {
  return fmt::format("{} ({})", choice.best, HumanDuration(*choice.best_ms / 1e3));
}

// "addmm of 0/0 forward (64x512, 64x256, 256x512)"
std::string KernelText(const FindingContext& context, const TunedKernel& kernel) {
  std::string text = kernel.kernel;
  std::vector<RankIndex> who;
  for (const TunedChoice& choice : kernel.on_ranks) who.push_back(choice.rank);
  if (kernel.slot >= 0) text += " of " + context.job.SlotOf(kernel.slot, who).Title();
  return kernel.shapes.empty() ? text : fmt::format("{} ({})", text, kernel.shapes);
}

// The code of these compiles differs by what was chosen, which no cache key holds.
void TakeInCode(FindingContext& context, Finding& finding) {
  const auto is_of_compiles = [&](const Finding& other) {
    return !other.compiles.empty() &&
           std::all_of(other.compiles.begin(), other.compiles.end(), [&](const std::string& label) {
             return std::find(finding.compiles.begin(), finding.compiles.end(), label) !=
                    finding.compiles.end();
           });
  };
  std::erase_if(context.findings, [&](Finding& other) {
    if ((other.kind != FindingKind::kCodeDivergence &&
         other.kind != FindingKind::kOneKeyTwoCodes) ||
        !is_of_compiles(other))
      return false;
    for (Finding& one : other.evidence) finding.evidence.push_back(std::move(one));
    other.evidence.clear();
    finding.evidence.push_back(std::move(other));
    return true;
  });
}

void AddOtherChoices(FindingContext& context, const Autotuned& tuned) {
  std::vector<OtherChoices> all;
  for (const TunedKernel& kernel : tuned.kernels)
    if (std::optional<OtherChoices> one = OtherChoicesOf(kernel)) all.push_back(std::move(*one));
  if (all.empty()) return;
  std::stable_sort(all.begin(), all.end(), [](const OtherChoices& a, const OtherChoices& b) {
    return a.Ratio() > b.Ratio();
  });
  const OtherChoices& worst = all.front();
  // A log has only the time of what its rank chose, and ranks measure at different paces: no loss is shown.
  Finding finding;
  finding.kind = FindingKind::kAutotuning;
  finding.severity = FindingSeverity::kNote;
  context.SetRanks(finding, worst.of_slowest);
  std::vector<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  for (const OtherChoices& one : all) {
    if (one.kernel->slot >= 0 &&
        std::find(slots.begin(), slots.end(), one.kernel->slot) == slots.end())
      slots.push_back(one.kernel->slot);
    ids.push_back(one.slowest->record_id);
    ids.push_back(one.fastest->record_id);
  }
  context.SetCompiles(finding, slots, worst.of_slowest);
  finding.cause = "tuning chose different kernels";
  finding.title =
      fmt::format("Tuning chose {} on {} and {} on {} for {}", ChoiceText(*worst.slowest),
                  context.WhoInside(worst.of_slowest), ChoiceText(*worst.fastest),
                  context.WhoInside(worst.of_fastest), KernelText(context, *worst.kernel));
  finding.detail =
      worst.Ratio() >= kNoise
          ? fmt::format(
                "The slower one took {:.2f} times as long, each measured on its rank: how "
                "fast the other one would be there is not in the log.",
                worst.Ratio())
          : "Both are equally fast, within the noise of the measurement.";
  if (all.size() > 1)
    finding.detail += fmt::format(" Ranks chose differently for {} more kernel{}.", all.size() - 1,
                                  all.size() == 2 ? "" : "s");
  finding.detail += " Their generated code differs, and their results may in the last bits.";
  finding.suggestion =
      "let one rank tune before the others, with a cache directory that all of them share "
      "(TORCHINDUCTOR_CACHE_DIR): a rank that finds the times there chooses the same";
  finding.query = fmt::format("SELECT * FROM autotune WHERE record_id IN {}", IdList(ids));
  TakeInCode(context, finding);
  context.findings.push_back(std::move(finding));
}

// Fewer than this share of the choices of a kernel are no loss: they are tried in the hope that they fit.
constexpr double kLeastShareOfChoices = 0.25;

bool IsOfKernel(const FailedChoice& failed, const TunedKernel& kernel) {
  return std::any_of(kernel.on_ranks.begin(), kernel.on_ranks.end(),
                     [&](const TunedChoice& choice) {
                       return choice.precompile_record_id &&
                              std::find(failed.record_ids.begin(), failed.record_ids.end(),
                                        *choice.precompile_record_id) != failed.record_ids.end();
                     });
}

void AddChoicesWithoutMemory(FindingContext& context, const Autotuned& tuned) {
  std::set<RankIndex> ranks;
  std::vector<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  std::string first;
  for (const TunedKernel& kernel : tuned.kernels) {
    std::size_t tried = static_cast<std::size_t>(kernel.on_ranks.front().choices.value_or(0));
    std::size_t count = 0;
    const FailedChoice* example = nullptr;
    for (const FailedChoice& one : tuned.failed) {
      if (!IsOfKernel(one, kernel)) continue;
      ++tried;
      if (one.is_out_of_memory) ++count, example = &one;
    }
    if (count == 0 ||
        static_cast<double>(count) < kLeastShareOfChoices * static_cast<double>(tried))
      continue;
    if (first.empty())
      first = fmt::format("{} of {} choices for {}", count, tried, KernelText(context, kernel));
    ranks.insert(example->ranks.begin(), example->ranks.end());
    ids.insert(ids.end(), example->record_ids.begin(), example->record_ids.end());
    if (kernel.slot >= 0 && std::find(slots.begin(), slots.end(), kernel.slot) == slots.end())
      slots.push_back(kernel.slot);
  }
  if (first.empty()) return;
  Finding& finding = context.Add(FindingKind::kAutotuning, FindingSeverity::kNote);
  context.SetRanks(finding, {ranks.begin(), ranks.end()});
  context.SetCompiles(finding, slots, {ranks.begin(), ranks.end()});
  finding.cause = "choices need more memory than the device has";
  finding.title = fmt::format("{} need more shared memory or registers than the device has", first);
  finding.detail =
      "They were compiled in vain, and the fastest of the others was taken. 'tlparse autotune' has "
      "what each needs.";
  finding.query = fmt::format(
      "SELECT * FROM autotune_failure WHERE is_out_of_memory AND record_id IN {}", IdList(ids));
}

// Less is not worth a word.
constexpr double kLeastTuningSeconds = 30, kLeastShareOfCompiles = 1.0 / 3;

void AddTuningTime(FindingContext& context, const Autotuned& tuned) {
  std::vector<RankIndex> ranks;
  std::optional<RankIndex> longest;
  for (const RankIndex rank : context.All()) {
    const double seconds = tuned.TuningSeconds(rank);
    if (seconds < kLeastTuningSeconds) continue;
    const std::optional<double> compiled = CompileSeconds(context.job, rank);
    if (!compiled || seconds < kLeastShareOfCompiles * *compiled) continue;
    ranks.push_back(rank);
    if (!longest || seconds > tuned.TuningSeconds(*longest)) longest = rank;
  }
  if (!longest) return;
  Finding& finding = context.Add(FindingKind::kAutotuning, FindingSeverity::kNote);
  context.SetRanks(finding, ranks);
  const double seconds = tuned.TuningSeconds(*longest);
  const double compiled = *CompileSeconds(context.job, *longest);
  finding.cause = "tuning takes a large part of compile time";
  const auto text = [](double s) { return SecondsText(static_cast<std::int64_t>(s * 1e6)); };
  finding.title =
      fmt::format("Tuning took {} of {} of compiles{}", text(seconds), text(compiled),
                  context.job.HasSeveral() ? " on " + context.WhoInside({*longest}) : "");
  std::set<std::int32_t> slots;
  std::vector<std::int64_t> ids;
  std::size_t kernels = 0;  // of the rank
  for (const TunedKernel& kernel : tuned.kernels) {
    for (const TunedChoice& choice : kernel.on_ranks) {
      if (kernel.is_at_run_time || choice.rank != *longest) continue;
      if (kernel.slot >= 0) slots.insert(kernel.slot);
      ids.push_back(choice.record_id);
      ++kernels;
    }
  }
  context.SetCompiles(finding, {slots.begin(), slots.end()}, {*longest});
  finding.detail = fmt::format("That is {:.0f} %, for {} kernel{}.", 100 * seconds / compiled,
                               kernels, PluralS(kernels));
  finding.suggestion =
      "keep the cache directory (TORCHINDUCTOR_CACHE_DIR) from one start to the next: times that "
      "are "
      "found there are not measured again";
  finding.query = fmt::format("SELECT * FROM autotune WHERE record_id IN {}", IdList(ids));
}

}  // namespace

Result<void> FindOtherChoices(FindingContext& context) {
  if (!context.job.HasSeveral()) return {};
  ASSIGN_OR_RETURN(const Autotuned tuned, LoadAutotuned(context.database, context.job));
  AddOtherChoices(context, tuned);
  return {};
}

Result<void> FindTuningCosts(FindingContext& context) {
  ASSIGN_OR_RETURN(const Autotuned tuned, LoadAutotuned(context.database, context.job));
  AddChoicesWithoutMemory(context, tuned);
  AddTuningTime(context, tuned);
  return {};
}

}  // namespace tlparse
