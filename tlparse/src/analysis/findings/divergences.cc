// Ranks that do not do what the others do: for each group of them one finding, the cause; what
// follows from it is its evidence.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/findings/advice.h"
#include "analysis/findings/context.h"
#include "analysis/ranks/cause.h"

namespace tlparse {
namespace {

// A difference as a finding, and how much it explains of others: the lower, the more.
struct Difference {
  Finding finding;
  int priority = 0;
};

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

class DivergenceFinder {
 public:
  explicit DivergenceFinder(FindingContext& context)
      : context_(context), answer_(context.ranks), job_(context.job) {}

  void Run() {
    if (!context_.HasRanks() || answer_.classes.size() < 2) return;
    // Where most ranks are in groups of their own, they were not meant to do the same.
    std::size_t ranks = job_.participants().size();
    is_by_design_ =
        !answer_.has_majority && answer_.classes.size() > 3 && 2 * answer_.classes.size() > ranks;
    if (is_by_design_) return TellGroups();
    for (std::size_t i = 1; i < answer_.classes.size(); ++i) Examine(answer_.classes[i]);
  }

 private:
  void Examine(const RankClass& one);
  void TellGroups();
  std::optional<Difference> Describe(const RankClass& one, const RankAspect& aspect);
  Difference Of(const RankClass& one, const RankAspect& aspect, FindingKind kind,
                FindingSeverity severity) const;
  // The end of one of these ranks, of which what they lack is a symptom; nullptr: none.
  Finding* EndOf(const std::vector<RankIndex>& ranks);
  bool IsUnfinished(const RankClass& one, const std::vector<std::int32_t>& slots) const;

  FindingContext& context_;
  const RanksAnswer& answer_;
  const Job& job_;
  bool is_by_design_ = false;
};

Finding* DivergenceFinder::EndOf(const std::vector<RankIndex>& ranks) {
  for (Finding& finding : context_.findings) {
    if (finding.kind != FindingKind::kCompileFailed && finding.kind != FindingKind::kStoppedFirst)
      continue;
    const auto has = [&](RankIndex rank, const Finding& one) {
      const auto& number = job_.participants()[static_cast<std::size_t>(rank)].rank;
      return number && std::binary_search(one.ranks.begin(), one.ranks.end(), *number);
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
  const RankIndex sides[] = {answer_.classes.front().ranks.front(), one.ranks.front()};
  for (const RankIndex rank : sides) {
    std::int32_t last = -1;
    for (const std::int32_t slot : job_.slot_order()) {
      if (job_.CompileOf(rank, slot) >= 0) last = job_.SlotPosition(slot);
    }
    for (const std::int32_t slot : slots) {
      const std::int32_t index = job_.CompileOf(rank, slot);
      if (index < 0 && job_.SlotPosition(slot) > last) return true;
      if (index < 0) continue;
      const std::string& status =
          job_.string(job_.compiles()[static_cast<std::size_t>(index)].status_id);
      if (status == "unfinished" || status == "failed") return true;
    }
  }
  return false;
}

Difference DivergenceFinder::Of(const RankClass& one, const RankAspect& aspect, FindingKind kind,
                                FindingSeverity severity) const {
  Difference difference;
  Finding& finding = difference.finding;
  finding.kind = kind;
  finding.severity = severity;
  finding.launch = job_.launch();
  difference.priority = PriorityOf(kind);
  context_.SetRanks(finding, one.ranks);
  context_.SetCompiles(finding, aspect.slots);
  if (!aspect.file.empty()) finding.place = FindingPlace{aspect.file, aspect.line, {}};
  std::vector<std::int64_t> ids;
  for (const std::int32_t slot : aspect.slots) {
    for (const RankIndex rank : {one.ranks.front(), answer_.classes.front().ranks.front()}) {
      const std::int32_t index = job_.CompileOf(rank, slot);
      if (index < 0) continue;
      const JobCompile& compile = job_.compiles()[static_cast<std::size_t>(index)];
      ids.push_back(compile.id);
      if (compile.start_us != 0 && rank == one.ranks.front() &&
          (!finding.since_us || compile.start_us < *finding.since_us))
        finding.since_us = compile.start_us;
    }
  }
  finding.query =
      ids.empty()
          ? fmt::format("SELECT * FROM rank_summary WHERE run_id = {}", job_.run_id())
          : fmt::format("SELECT * FROM compile_history WHERE compile_id IN {}", IdList(ids));
  return difference;
}

// "inductor_config[max_fusion_size]: 64 → 13" → "max_fusion_size 64 → 13".
std::string ShortOption(std::string text) {
  for (const std::string_view prefix : {"inductor_config[", "autograd_config[", "aot_config["}) {
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) {
      const std::size_t end = text.find("]: ", at);
      if (end == std::string::npos) break;
      text = text.substr(0, at) + text.substr(at + prefix.size(), end - at - prefix.size()) + " " +
             text.substr(end + 3);
    }
  }
  return text;
}

std::optional<Difference> DivergenceFinder::Describe(const RankClass& one,
                                                     const RankAspect& aspect) {
  const std::string who = context_.Who(one.ranks);
  const std::string others = "the others";
  Finding scratch;
  const std::string where = context_.SetCompiles(scratch, aspect.slots);
  const auto make = [&](FindingKind kind, FindingSeverity severity, std::string cause,
                        std::string title) {
    Difference difference = Of(one, aspect, kind, severity);
    difference.finding.cause = std::move(cause);
    difference.finding.title = std::move(title);
    return difference;
  };
  const std::string& area = aspect.area;
  if (area == "build") {
    return make(FindingKind::kConfigDivergence, FindingSeverity::kError, aspect.text,
                fmt::format("{} run{} another build: {}", who, one.ranks.size() == 1 ? "s" : "",
                            aspect.text));
  }
  if (area == "graph_breaks") {
    const std::string cause = CauseOfBreak(aspect.reason);
    Difference difference =
        make(FindingKind::kGraphBreakDivergence, FindingSeverity::kWarning, cause,
             aspect.is_on_others
                 ? fmt::format("{} {} not break the graph of {} where {} do: {}", who,
                               one.ranks.size() == 1 ? "does" : "do", where, others, cause)
                 : fmt::format("Only {} break{} the graph of {}: {}", context_.WhoInside(one.ranks),
                               one.ranks.size() == 1 ? "s" : "", where, cause));
    if (difference.finding.place)
      difference.finding.title += " at " + PlaceText(*difference.finding.place);
    difference.finding.suggestion = HintOf(aspect.reason);
    if (const std::string link = LinkOf(aspect.reason); !link.empty())
      difference.finding.suggestion +=
          (difference.finding.suggestion.empty() ? "see " : "; see ") + link;
    return difference;
  }
  if (area == "collectives" && aspect.is_state) {
    return make(FindingKind::kCollectiveDivergence, FindingSeverity::kError, aspect.text,
                fmt::format("The collectives of {} are not in the log{} of {}", where,
                            one.ranks.size() == 1 ? "" : "s", context_.WhoInside(one.ranks)));
  }
  if (area == "collectives") {
    return make(FindingKind::kCollectiveDivergence, FindingSeverity::kError, aspect.text,
                fmt::format("{} schedule{} other collectives than {}: {}", who,
                            one.ranks.size() == 1 ? "s" : "", others, aspect.text));
  }
  if (area == "execution") {
    return make(FindingKind::kExecutionDivergence, FindingSeverity::kWarning, aspect.text,
                fmt::format("{} ran {} graphs in another order: {}", who,
                            one.ranks.size() == 1 ? "its" : "their", aspect.text));
  }
  if (area == "code" || area == "tensors") {
    return make(FindingKind::kCodeDivergence, FindingSeverity::kWarning, aspect.text,
                fmt::format("{} {} in {}", who,
                            area == "code" ? "generated other code" : "has other output tensors",
                            aspect.text));
  }
  if (area == "compiles" && aspect.cause == CauseKind::kMissingCompile) {
    const std::size_t because = aspect.text.find("recompiled because ");
    std::string reason =
        because == std::string::npos ? std::string() : aspect.text.substr(because + 19);
    if (!aspect.is_on_others) {
      return make(
          FindingKind::kExtraCompile, FindingSeverity::kWarning, reason,
          fmt::format("Only {} compiled {}{}", context_.WhoInside(one.ranks), where,
                      reason.empty() ? "" : ", recompiled because " + Shorten(reason, 160)));
    }
    return make(FindingKind::kMissingCompile, FindingSeverity::kWarning, reason,
                fmt::format("{} did not compile {}, {} did", who, where, others));
  }
  if (area == "graphs" || area == "compiles") {
    return make(FindingKind::kGraphDivergence, FindingSeverity::kWarning, aspect.text,
                fmt::format("{} compiled another graph: {}", who, aspect.text));
  }
  if (area != "cache" || !aspect.cause) return std::nullopt;
  switch (*aspect.cause) {
    case CauseKind::kBuild:
      return make(FindingKind::kConfigDivergence, FindingSeverity::kError, aspect.reason,
                  fmt::format("{} run{} another build: {}", who, one.ranks.size() == 1 ? "s" : "",
                              aspect.reason));
    case CauseKind::kConfig:
    case CauseKind::kSetting: {
      Difference difference =
          make(FindingKind::kConfigDivergence, FindingSeverity::kWarning, aspect.reason,
               fmt::format("{} compiled with another configuration: {}", who,
                           ShortOption(aspect.reason)));
      difference.finding.suggestion =
          "set the same option on all ranks, unless they are meant to differ";
      return difference;
    }
    case CauseKind::kInputs:
      return make(FindingKind::kInputDivergence, FindingSeverity::kWarning, aspect.reason,
                  fmt::format("{} compiled {} for other inputs: {}", who, where, aspect.reason));
    case CauseKind::kGuardMiss:
      return make(FindingKind::kInputDivergence, FindingSeverity::kWarning, aspect.reason,
                  fmt::format("{} found cached entries whose guards do not hold in {}: {}", who,
                              where, aspect.reason));
    case CauseKind::kRemoteError:  // a finding of its own, whether ranks differ in it or not
      return std::nullopt;
    case CauseKind::kBypass:
      return make(FindingKind::kCacheBypassed, FindingSeverity::kWarning, aspect.reason,
                  fmt::format("{} bypassed the cache in {}: {}", who, where, aspect.reason));
    case CauseKind::kProcessGroup:  // ranks of another group: expected
      return make(FindingKind::kCodeDivergence, FindingSeverity::kNote, aspect.reason,
                  fmt::format("{} looked up other cache keys in {}: only names of process groups "
                              "differ",
                              who, where));
    default:
      return make(FindingKind::kCodeDivergence, FindingSeverity::kWarning, aspect.reason,
                  fmt::format("{} looked up other cache keys in {}: {}", who, where, aspect.text));
  }
}

void DivergenceFinder::Examine(const RankClass& one) {
  Finding* const end = EndOf(one.ranks);
  Finding* const reference_end = end != nullptr ? end : EndOf(answer_.classes.front().ranks);
  std::vector<Difference> own, symptoms;
  for (const RankAspect& aspect : one.aspects) {
    // What a failed or unfinished compile lacks is said by its end.
    const bool is_symptom =
        aspect.is_state ||
        (reference_end != nullptr && aspect.area != "build" && aspect.cause != CauseKind::kConfig &&
         aspect.area != "graph_breaks" && IsUnfinished(one, aspect.slots));
    if (aspect.area == "failures") continue;
    std::optional<Difference> difference = Describe(one, aspect);
    if (!difference) continue;
    (is_symptom ? symptoms : own).push_back(std::move(*difference));
  }
  const auto by_priority = [](const Difference& a, const Difference& b) {
    return a.priority < b.priority;
  };
  std::stable_sort(own.begin(), own.end(), by_priority);
  constexpr std::size_t kMostEvidence = 20;
  const auto add_evidence = [](Finding& finding, std::vector<Difference>& differences,
                               std::size_t first, bool as_notes) {
    for (std::size_t i = first; i < differences.size(); ++i) {
      if (finding.evidence.size() >= kMostEvidence) return;
      if (as_notes) differences[i].finding.severity = FindingSeverity::kNote;
      finding.evidence.push_back(std::move(differences[i].finding));
    }
  };
  if (end != nullptr) add_evidence(*end, symptoms, 0, true);
  if (own.empty() || context_.AreDamaged(one.ranks) ||
      context_.AreDamaged(answer_.classes.front().ranks))
    return;
  Finding finding = std::move(own.front().finding);
  for (std::size_t i = 1; i < own.size(); ++i)
    finding.severity = std::min(finding.severity, own[i].finding.severity);
  if (!answer_.has_majority)
    finding.detail = fmt::format("There is no majority: compared with {}.",
                                 context_.WhoInside(answer_.classes.front().ranks));
  // A graph that follows from an order of collectives tells where that was written.
  for (const Difference& other : own) {
    if (finding.place) break;
    if (other.finding.place) finding.place = other.finding.place;
  }
  add_evidence(finding, own, 1, false);
  context_.findings.push_back(std::move(finding));
}

void DivergenceFinder::TellGroups() {
  Finding& finding = context_.Add(FindingKind::kGraphDivergence, FindingSeverity::kNote);
  context_.SetRanks(finding, context_.All());
  finding.title = fmt::format("The {} ranks compiled {} different things",
                              job_.participants().size(), answer_.classes.size());
  finding.cause = "ranks fall into groups";
  finding.detail =
      "As in a job whose ranks hold parts of a model each. 'tlparse ranks' has the "
      "groups and what sets them apart.";
  finding.query = fmt::format("SELECT * FROM rank_summary WHERE run_id = {}", job_.run_id());
}

}  // namespace

Result<void> FindDivergences(FindingContext& context) {
  DivergenceFinder(context).Run();
  return {};
}

}  // namespace tlparse
