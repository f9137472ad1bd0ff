// Ranks that do not do what the others do: for each group of them one finding, the cause; what
// follows from it is its evidence.
#include "findings/divergences.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "artifacts/common/text/python_traceback.h"
#include "base/plural.h"
#include "facts/cache/cause.h"
#include "facts/compiles/advice.h"
#include "facts/ranks/rank_votes.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// Kinds in the order in which one explains another.
int PriorityOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kConfigDivergence:
      return 0;
    case FindingKind::kGraphBreakDivergence:
      return 1;
    case FindingKind::kInputDivergence:
      return 2;
    case FindingKind::kCacheBypassed:
      return 3;
    case FindingKind::kCollectiveDivergence:
      return 4;
    case FindingKind::kGraphDivergence:
      return 5;
    case FindingKind::kExtraCompile:
    case FindingKind::kMissingCompile:
      return 6;
    case FindingKind::kExecutionDivergence:
      return 7;
    default:
      return 8;
  }
}

}  // namespace

bool DivergenceFinder::HasRank(const std::vector<RankIndex>& participants) const {
  return std::any_of(participants.begin(), participants.end(), [&](RankIndex one) {
    return job_.participants()[static_cast<std::size_t>(one)].rank.has_value();
  });
}

// Whether two logs are of processes that compiled the same functions, however often: of PyTorch's
// own, as that around each module that is given to torch.compile, it says nothing.
bool DivergenceFinder::CompiledTheSame(RankIndex a, RankIndex b) const {
  using Function = std::tuple<std::int32_t, std::int32_t, std::int64_t>;
  std::set<Function> of_a, of_b;
  for (const JobCompile& compile : job_.compiles()) {
    if (compile.function_id < 0) continue;
    if (compile.file_id >= 0 && IsTorchFile(job_.string(compile.file_id))) continue;
    const Function function{compile.function_id, compile.file_id, compile.line};
    if (compile.participant == a) of_a.insert(function);
    if (compile.participant == b) of_b.insert(function);
  }
  return !of_a.empty() && of_a == of_b;
}

// By run.json. An end is seen some time after it came: a tenth of a life is not beside the other.
bool DivergenceFinder::RanInTurn(RankIndex a, RankIndex b) const {
  const ProcessExit* const one = ExitOf(exits_, context_.StatusOf(a).process_id);
  const ProcessExit* const other = ExitOf(exits_, context_.StatusOf(b).process_id);
  if (one == nullptr || other == nullptr || !one->ended_us || !other->ended_us) return false;
  const std::int64_t beside_us =
      std::min(*one->ended_us, *other->ended_us) -
      std::max(one->started_us.value_or(0), other->started_us.value_or(0));
  return beside_us * 10 <= std::min(*one->ended_us - one->started_us.value_or(0),
                                    *other->ended_us - other->started_us.value_or(0));
}

// Nothing shows that logs without rank are of processes that were meant to do the same. Programs that
// a script ran one after another are not.
void DivergenceFinder::CompareLogs() {
  for (std::size_t i = 1; i < classes_.size(); ++i) {
    const RankClass& one = classes_[i];
    if (!CompiledTheSame(Reference().front(), one.ranks.front()) ||
        RanInTurn(Reference().front(), one.ranks.front()))
      continue;
    const std::size_t count = context_.findings.size();
    Examine(one);
    for (std::size_t j = count; j < context_.findings.size(); ++j) {
      Finding& finding = context_.findings[j];
      finding.severity = FindingSeverity::kNote;
      finding.detail += fmt::format(
          "{}The logs name no rank: nothing shows that their processes were meant to do the same.",
          finding.detail.empty() ? "" : " ");
    }
  }
}

void DivergenceFinder::Run() {
  if (classes_.size() < 2) return;
  if (!context_.HasRanks()) return CompareLogs();
  if (context_.compares_programs) TakeOutOwnThings();
  JoinAlike();
  for (std::size_t i = 1; i < classes_.size(); ++i) {
    const std::vector<RankIndex>& ranks = classes_[i].ranks;
    const bool is_of_other_job = std::all_of(ranks.begin(), ranks.end(), [&](RankIndex rank) {
      return job_.participants()[static_cast<std::size_t>(rank)].is_of_other_job;
    });
    if (HasRank(ranks) && !is_of_other_job) Examine(classes_[i]);
  }
}

Finding* DivergenceFinder::EndOf(const std::vector<RankIndex>& ranks) {
  for (Finding& finding : context_.findings) {
    if (finding.kind != FindingKind::kCompileFailed && finding.kind != FindingKind::kStoppedFirst)
      continue;
    const auto has = [&](RankIndex rank, const Finding& one) {
      const auto& number = job_.participants()[static_cast<std::size_t>(rank)].rank;
      return number && ((one.ranks.empty() && one.logs.empty()) ||
                        std::binary_search(one.ranks.begin(), one.ranks.end(), *number));
    };
    const bool is_own = std::any_of(ranks.begin(), ranks.end(), [&](RankIndex rank) {
      return has(rank, finding) ||
             std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const Finding& one) {
               return one.kind == FindingKind::kStoppedFirst && has(rank, one);
             });
    });
    if (is_own) return &finding;
  }
  return nullptr;
}

// Whether a compile of `slots` did not come to its end on one of the two sides, or lies behind the
// last one of a side whose log ends early.
bool DivergenceFinder::IsUnfinished(const RankClass& one,
                                    const std::vector<std::int32_t>& slots) const {
  const RankIndex sides[] = {Reference().front(), one.ranks.front()};
  for (const RankIndex rank : sides) {
    std::int32_t last = -1;
    for (const std::int32_t slot : job_.slot_order()) {
      if (job_.CompileOf(rank, slot) >= 0) last = job_.SlotPosition(slot);
    }
    for (const std::int32_t slot : slots) {
      const std::int32_t index = job_.CompileOf(rank, slot);
      if (index < 0 && job_.SlotPosition(slot) > last) return true;
      if (index < 0) continue;
      if (!IsFinished(job_.compiles()[static_cast<std::size_t>(index)].status)) return true;
    }
  }
  return false;
}

namespace {

// The records in which PyTorch names its version, which are among a log's first; without them the
// rows stay as they are.
void SetVersionRows(const FindingContext& context, const std::vector<RankIndex>& who,
                    Finding& finding) {
  std::vector<std::int64_t> processes;
  for (const RankIndex rank : who) {
    const std::vector<std::int64_t>& own =
        context.job.participants()[static_cast<std::size_t>(rank)].process_ids;
    processes.insert(processes.end(), own.begin(), own.end());
  }
  const std::string query = fmt::format(
      "SELECT r.id FROM process p "
      "JOIN record r ON r.id BETWEEN p.first_record_id AND p.first_record_id + 20 "
      "AND r.process_id = p.id WHERE p.id IN {} AND r.name = 'torch_version'",
      IdList(processes));
  const Result<std::int64_t> found =
      context.database.QueryInt(fmt::format("SELECT EXISTS ({})", query));
  if (found && *found != 0)
    finding.query = fmt::format("SELECT * FROM record WHERE id IN ({})", query);
}

}  // namespace

Difference DivergenceFinder::Of(const RankClass& one, const RankAspect& aspect, FindingKind kind,
                                FindingSeverity severity) const {
  Difference difference;
  Finding& finding = difference.finding;
  finding.kind = kind;
  finding.severity = severity;
  finding.launch = job_.launch();
  difference.priority = PriorityOf(kind);
  if (!aspect.slots.empty()) difference.position = job_.SlotPosition(aspect.slots.front());
  std::vector<RankIndex> who = one.ranks;
  if (!aspect.has_majority) {
    const std::vector<RankIndex>& reference = Reference();
    who.insert(who.end(), reference.begin(), reference.end());
    std::sort(who.begin(), who.end());
  }
  context_.SetRanks(finding, who);
  context_.SetCompiles(finding, aspect.slots, who);
  difference.is_odd_known = aspect.has_majority;
  difference.unknown = WithoutOutcome(one, aspect);
  if (!aspect.file.empty()) finding.place = FindingPlace{aspect.file, aspect.line, {}};
  if (kind == FindingKind::kInputDivergence && !finding.place && !aspect.slots.empty()) {
    const JobSlot slot = job_.SlotOf(aspect.slots.front(), who);
    if (!slot.file.empty()) finding.place = FindingPlace{slot.file, slot.line, {}};
  }
  std::vector<std::int64_t> ids;
  for (const std::int32_t slot : aspect.slots) {
    for (const RankIndex rank : {one.ranks.front(), Reference().front()}) {
      const std::int32_t index = job_.CompileOf(rank, slot);
      if (index < 0) continue;
      const JobCompile& compile = job_.compiles()[static_cast<std::size_t>(index)];
      ids.push_back(compile.id);
      if (compile.start_us != 0 && rank == one.ranks.front() &&
          (!finding.since_us || compile.start_us < *finding.since_us))
        finding.since_us = compile.start_us;
    }
  }
  finding.query = ids.empty() ? "SELECT * FROM rank_summary WHERE " + context_.OfLaunch()
                              : fmt::format("SELECT * FROM compile_history WHERE compile_id IN {}",
                                            IdList(ids));
  if (aspect.area == AspectArea::kBuild || aspect.cause == CauseKind::kBuild)
    SetVersionRows(context_, {one.ranks.front(), Reference().front()}, finding);
  return difference;
}

namespace {

// Rank 0 alone compiled more, because it ran something without grad, and differs in nothing else.
bool IsOfEvaluation(const Finding& finding) {
  const auto is_compile = [](const Finding& one) {
    return one.kind == FindingKind::kExtraCompile && one.ranks == std::vector<std::int64_t>{0};
  };
  const auto is_of_grad_mode = [](const Finding& one) {
    return one.cause.find("GLOBAL_STATE changed: grad_mode") != std::string::npos;
  };
  return is_compile(finding) &&
         std::all_of(finding.evidence.begin(), finding.evidence.end(), is_compile) &&
         (is_of_grad_mode(finding) ||
          std::any_of(finding.evidence.begin(), finding.evidence.end(), is_of_grad_mode));
}

void AddEvidence(std::vector<Difference>& differences, Finding& finding) {
  constexpr std::size_t kMostEvidence = 20;
  for (Difference& difference : differences) {
    if (finding.evidence.size() >= kMostEvidence) return;
    finding.evidence.push_back(std::move(difference.finding));
  }
}

// Another build shows in what the logs say of it and in the cache keys. The longer text of the two
// says more; compiles are those of the keys.
void TakeInSameBuild(Finding& finding, std::vector<Difference>& others) {
  std::erase_if(others, [&](const Difference& other) {
    const Finding& own = other.finding;
    if (own.kind != FindingKind::kConfigDivergence || own.kind != finding.kind ||
        !(own.cause.starts_with(finding.cause) || finding.cause.starts_with(own.cause)))
      return false;
    if (own.cause.size() >= finding.cause.size()) finding = own;
    return true;
  });
}

// Options that a cache key names and options that only the metrics name are one difference.
std::vector<RankAspect> WithOptionsAsOne(std::vector<RankAspect> aspects) {
  std::vector<RankAspect> result;
  for (RankAspect& aspect : aspects) {
    const auto first = std::find_if(result.begin(), result.end(), [&](const RankAspect& one) {
      return !one.options.empty() && one.has_majority == aspect.has_majority &&
             one.is_on_others == aspect.is_on_others;
    });
    if (aspect.options.empty() || first == result.end()) {
      result.push_back(std::move(aspect));
      continue;
    }
    for (RankOption& option : aspect.options) {
      const bool is_told =
          std::any_of(first->options.begin(), first->options.end(),
                      [&](const RankOption& told) { return told.name == option.name; });
      if (!is_told) first->options.push_back(std::move(option));
    }
  }
  return result;
}

}  // namespace

std::vector<Change> OptionsOfReference(const std::vector<RankOption>& options) {
  std::vector<Change> changes;
  for (const RankOption& one : options) {
    const std::string option = OptionOfConfig(one.name);
    if (!option.empty() && one.before)
      changes.push_back({ChangeKind::kOption, option, *one.before, {}, {}});
  }
  return changes;
}

// Ranks of neither side whose logs end before a compile of this aspect came to its end.
std::vector<RankIndex> DivergenceFinder::WithoutOutcome(const RankClass& one,
                                                        const RankAspect& aspect) const {
  std::vector<RankIndex> without;
  if (aspect.slots.empty()) return without;
  for (const RankIndex rank : context_.Others(one.ranks)) {
    const bool is_known =
        !answer_.damage.EndsEarly(job_, rank) ||
        std::any_of(aspect.slots.begin(), aspect.slots.end(),
                    [&](std::int32_t slot) { return answer_.damage.Shows(job_, rank, slot); });
    if (!is_known) without.push_back(rank);
  }
  return without;
}

void DivergenceFinder::Examine(const RankClass& one) {
  Finding* const end = EndOf(one.ranks);
  Finding* const reference_end = end != nullptr ? end : EndOf(Reference());
  std::vector<Difference> own, symptoms, of_hashes;
  for (const RankAspect& aspect : WithOptionsAsOne(one.aspects)) {
    // The finding on its end reports what a failed or unfinished compile lacks.
    const bool is_symptom =
        aspect.is_state ||
        (reference_end != nullptr && !IsOfConfiguration(aspect) &&
         aspect.cause != CauseKind::kBypass && aspect.area != AspectArea::kGraphBreaks &&
         IsUnfinished(one, aspect.slots));
    if (aspect.area == AspectArea::kFailures) continue;
    if (!(IsOfConfiguration(aspect) ? context_.compares_configuration : context_.compares_programs))
      continue;
    std::optional<Difference> difference = Describe(one, aspect);
    if (!difference) continue;
    if (is_symptom) difference->finding.severity = FindingSeverity::kNote;
    (is_symptom                 ? symptoms
     : difference->is_of_hashes ? of_hashes
                                : own)
        .push_back(std::move(*difference));
  }
  if (end != nullptr) AddEvidence(symptoms, *end);
  // What a rank was given comes first; then the compile in which the ranks first differ.
  const auto order = [](const Difference& of) {
    const bool is_given = of.finding.kind == FindingKind::kConfigDivergence;
    return std::tuple(!is_given, of.finding.severity == FindingSeverity::kNote,
                      of.position < 0 || is_given ? INT32_MAX : of.position, of.priority);
  };
  std::stable_sort(own.begin(), own.end(),
                   [&](const Difference& a, const Difference& b) { return order(a) < order(b); });
  if (context_.AreDamaged(one.ranks) || context_.AreDamaged(Reference())) return;
  for (std::vector<Difference>* const differences : {&own, &of_hashes}) {
    if (!differences->empty()) Report(one, std::move(*differences));
  }
}

// `own`: what sets a class apart, the cause first.
void DivergenceFinder::Report(const RankClass& one, std::vector<Difference> own) {
  Finding finding = std::move(own.front().finding);
  const bool is_odd_known = own.front().is_odd_known;
  const std::vector<RankIndex> unknown = std::move(own.front().unknown);
  own.erase(own.begin());
  TakeInSameBuild(finding, own);
  for (const Difference& other : own)
    finding.severity = std::min(finding.severity, other.finding.severity);
  const bool is_expected = finding.ranks.empty() && finding.severity == FindingSeverity::kNote;
  const auto say = [&](std::string_view sentence) {
    finding.detail += (finding.detail.empty() ? "" : " ") + std::string(sentence);
  };
  if (!is_odd_known && !is_expected)
    say("There is no majority: which side is the odd one is not known.");
  if (!unknown.empty())
    say(fmt::format("The log{} of {} end{} before that: which side {} on is not known.",
                    PluralS(unknown.size()), context_.WhoInside(unknown), VerbS(unknown.size()),
                    unknown.size() == 1 ? "it is" : "they are"));
  // A graph that follows from an order of collectives shows where that was written.
  for (const Difference& other : own) {
    if (finding.place || finding.kind == FindingKind::kConfigDivergence) break;
    if (other.finding.place) finding.place = other.finding.place;
  }
  AddEvidence(own, finding);
  const bool is_extra = std::all_of(one.ranks.begin(), one.ranks.end(), [&](RankIndex rank) {
    return job_.participants()[static_cast<std::size_t>(rank)].is_extra_log;
  });
  if (is_extra) {
    finding.severity = FindingSeverity::kNote;
    say("These are further logs of ranks, of the same time: another job may have written them into "
        "the same folder.");
  }
  if (IsOfEvaluation(finding)) {
    finding.severity = FindingSeverity::kNote;
    finding.detail = "As where rank 0 alone evaluates: it ran the function in another grad mode.";
  }
  context_.findings.push_back(std::move(finding));
}

Result<void> FindDivergences(FindingContext& context) {
  std::vector<ProcessExit> exits;
  if (!context.HasRanks()) {
    ASSIGN_OR_RETURN(exits, LoadExits(context.database, context.job.run_id()));
  }
  DivergenceFinder(context, std::move(exits)).Run();
  return {};
}

}  // namespace tlparse
