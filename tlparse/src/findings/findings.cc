#include "findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/ascii.h"
#include "facts/job/read_transaction.h"
#include "findings/consequences.h"
#include "findings/context.h"
#include "findings/role_contexts.h"
#include "store/hash128.h"

namespace tlparse {
namespace {

// Families in the order in which they may build on each other: those that explain what a rank does
// not do any more come before those that compare ranks. A new family is a function and a row.
struct FamilyOfJob {
  FindingFamily find;
  bool is_of_role = false;           // compares ranks that are meant to do equal work
  bool is_of_configuration = false;  // and what must be equal across roles
  bool needs_log = true;             // false: other inputs alone show it
  bool needs_others = false;  // inputs that are no logs: without them there is nothing to read
};
constexpr FamilyOfJob kFamilies[] = {
    {&FindEnds},
    {&FindStuck},
    {&FindOtherJobs},
    {&FindDivergences, true, true},
    {.find = &FindIssuedCollectives, .needs_log = false},
    {&SayBranches},  // adds to those before
    {&FindCacheCauses, true},
    {&FindOtherChoices, true},  // takes in those on code
    {&FindTuningCosts},
    {&FindRecompiles},
    {&FindGraphBreaks},
    {&FindNothingCompiled},
    {&FoldOwnBreaks},
    {&FindSkippedCudaGraphs},
    {.find = &FindInTorchLogs, .needs_log = false, .needs_others = true},
    {.find = &FindInRas, .needs_log = false, .needs_others = true},
    {&FindSlowRanks, true},
    {.find = &FindAbsentRanks, .needs_log = false},
    {&FindLateRanks, true},
    {.find = &FindLateAtCollectives, .needs_log = false},
    {&FindGuardWaits},
    {&FindNotFinite},
    {.find = &FindFailedAllocations, .needs_log = false, .needs_others = true},
    {.find = &FindMemoryGrowth, .needs_log = false, .needs_others = true},
    {.find = &FindSlowInput, .needs_log = false, .needs_others = true},
    {.find = &FindMemoryImbalance, .is_of_role = true, .needs_log = false, .needs_others = true},
    {&FindLaunchNotes},
    {.find = &FindExits, .needs_log = false, .needs_others = true},
    {.find = &FindHangs, .needs_log = false, .needs_others = true},
    {.find = &FindDebugServerPlaces, .needs_log = false, .needs_others = true},
    {.find = &FindHiddenFailures, .needs_log = false, .needs_others = true},
    {.find = &FindImportErrors, .needs_log = false},
};

std::string WithoutNumbers(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_hex = text.substr(i).starts_with("0x");
    if (!is_hex && !IsDigit(text[i])) {
      result += text[i];
      continue;
    }
    result += '0';
    if (is_hex) i += 2;
    while (i < text.size() && (is_hex ? HexDigit(text[i]) >= 0 : IsDigit(text[i]))) ++i;
    --i;
  }
  return result;
}

void SetId(Finding& finding) {
  std::string text = fmt::format("{}\n{}\n", Name(finding.kind), finding.function);
  if (finding.place) {
    const std::string& file = finding.place->file;
    text += fmt::format("{}:{}", file.substr(file.rfind('/') + 1), finding.place->line);
  }
  text += '\n' + WithoutNumbers(finding.cause);
  finding.id = fmt::format("{}-{}", Name(finding.kind), ToHex(HashBytes(text)).substr(0, 12));
  for (Finding& one : finding.evidence) SetId(one);
}

bool IsEnd(FindingKind kind) {
  return kind == FindingKind::kCompileFailed || kind == FindingKind::kCrashed ||
         kind == FindingKind::kStoppedFirst || kind == FindingKind::kStuck;
}

// What a record that is lost or changed can bring about.
bool CanComeOfDamage(FindingKind kind) {
  switch (kind) {
    case FindingKind::kMissingRank:
    case FindingKind::kRecompiles:
    case FindingKind::kGraphBreak:
    case FindingKind::kCacheBypassed:
    case FindingKind::kRestarted:
    case FindingKind::kImportErrors:
      return false;
    default:
      return true;
  }
}

}  // namespace

void SayDamage(const FindingContext& context, Finding& finding) {
  if (finding.severity == FindingSeverity::kNote || !CanComeOfDamage(finding.kind)) return;
  std::vector<RankIndex> who;
  for (const RankIndex one : context.All()) {
    const JobParticipant& participant = context.job.participants()[static_cast<std::size_t>(one)];
    const bool is_meant = participant.rank ? std::find(finding.ranks.begin(), finding.ranks.end(),
                                                       *participant.rank) != finding.ranks.end()
                                           : std::find(finding.logs.begin(), finding.logs.end(),
                                                       participant.name) != finding.logs.end();
    if (is_meant) who.push_back(one);
  }
  if (!context.AreDamaged(who)) return;
  finding.detail += fmt::format(
      "{}{} damaged: records of {} are lost or changed, which may be the cause of this.",
      finding.detail.empty() || finding.detail.ends_with(' ') ? "" : " ",
      who.size() == 1 ? "The log is" : "The logs are", who.size() == 1 ? "it" : "them");
}

namespace {

// A wait for ranks, their end, or that they left nothing, for which no other rank is the cause.
bool IsHang(FindingKind kind) {
  return kind == FindingKind::kCrashed || kind == FindingKind::kStoppedFirst ||
         kind == FindingKind::kMissingRank || kind == FindingKind::kStuck ||
         kind == FindingKind::kCollectiveNotReached || kind == FindingKind::kCollectiveDivergence;
}

// Where a job hangs or ends by some ranks, another one that was slow before is a bystander.
void LowerBystanders(std::vector<Finding>& findings) {
  for (Finding& slow : findings) {
    if (slow.kind != FindingKind::kStraggler && slow.kind != FindingKind::kLateRank) continue;
    const bool is_other = std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
      return IsHang(one.kind) && one.severity != FindingSeverity::kNote && !one.ranks.empty() &&
             std::none_of(slow.ranks.begin(), slow.ranks.end(), [&](std::int64_t rank) {
               return std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end();
             });
    });
    if (is_other) slow.severity = FindingSeverity::kNote;
  }
}

// Kinds that a healthy job may have.
bool IsOfHealthyJobs(FindingKind kind) {
  return kind == FindingKind::kRecompiles || kind == FindingKind::kGraphBreak ||
         kind == FindingKind::kCacheBypassed || kind == FindingKind::kImportErrors;
}

void Order(std::vector<Finding>& findings) {
  const auto key = [](const Finding& one) {
    const bool is_note = one.severity == FindingSeverity::kNote;
    // Among notes what is not in the inputs comes first: the others are made without it. Then a rank
    // that others wait for. Recompiles that the program asks for come behind others. Data that differ, as
    // each rank has its own, come late; keys and codes that differ where nothing else does come last.
    const int note = one.kind == FindingKind::kMissingRank                      ? 0
                     : one.kind == FindingKind::kStraggler                      ? 1
                     : one.kind == FindingKind::kInputDivergence                ? 4
                     : one.kind == FindingKind::kCodeDivergence                 ? 5
                     : one.kind == FindingKind::kRecompiles && one.is_asked_for ? 3
                                                                                : 2;
    return std::tuple(one.severity, is_note ? note : int{!IsEnd(one.kind)},
                      one.severity == FindingSeverity::kWarning && IsOfHealthyJobs(one.kind),
                      one.since_us.value_or(INT64_MAX), -static_cast<std::int64_t>(one.rank_count));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

Result<bool> HasOtherInputs(const FindingContext& context) {
  ASSIGN_OR_RETURN(
      const std::int64_t found,
      context.database.QueryInt(fmt::format(
          "SELECT EXISTS (SELECT 1 FROM profile WHERE run_id = {})", context.job.run_id())));
  return found != 0;
}

Result<void> RunFamilies(FindingContext& context) {
  ASSIGN_OR_RETURN(RoleComparisons roles, RoleComparisons::Make(context));
  ASSIGN_OR_RETURN(const bool has_others, HasOtherInputs(context));
  for (const FamilyOfJob& family : kFamilies) {
    if (family.needs_others && !has_others) continue;
    if (!family.is_of_role) {
      RETURN_IF_ERROR(family.find(context));
      continue;
    }
    if (roles.HasSeveral() && family.is_of_configuration)
      RETURN_IF_ERROR(roles.RunAcrossRoles(family.find));
    RETURN_IF_ERROR(roles.Run(family.find));
  }
  for (Finding& finding : context.findings) roles.NameRoles(finding);
  return {};
}

Result<std::vector<Finding>> Find(Database& database, const FindingsOptions& options,
                                  const RanksAnswer& ranks, const LiveJob* live) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  ASSIGN_OR_RETURN(FindingContext context, FindingContext::Make(database, options, ranks));
  context.live = live;
  if (context.job.participants().empty()) {
    for (const FamilyOfJob& family : kFamilies) {
      if (!family.needs_log) RETURN_IF_ERROR(family.find(context));
    }
  } else {
    RETURN_IF_ERROR(RunFamilies(context));
  }
  if (live != nullptr) {
    std::erase_if(context.findings,
                  [](const Finding& finding) { return !IsSettledWhileRunning(finding.kind); });
  }
  for (Finding& finding : context.findings) {
    if (!finding.launch) finding.launch = context.job.launch();
    while (finding.detail.ends_with(' ')) finding.detail.pop_back();
    SayDamage(context, finding);
    SetId(finding);
  }
  MoveBehindOther(context.findings);
  LowerBystanders(context.findings);
  Order(context.findings);
  RETURN_IF_ERROR(SetRows(database, context.findings));
  RETURN_IF_ERROR(SetExperiments(database, context.job.run_id(), context.findings));
  return std::move(context.findings);
}

Result<std::vector<Finding>> Find(Database& database, const FindingsOptions& options,
                                  const LiveJob* live) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  RanksOptions ranks_options;
  ranks_options.run = options.run;
  ranks_options.launch = options.launch;
  ranks_options.world_size = options.world_size;
  Result<RanksAnswer> ranks = AnalyzeRanks(database, ranks_options);
  if (ranks) return Find(database, options, *ranks, live);
  // Dumps without logs answer what they can.
  Result<Job> without_logs = Job::LoadWithoutLogs(database, options.run);
  if (!without_logs || options.launch) return tl::unexpected<Error>(ranks.error());
  RanksAnswer nobody;
  nobody.cache.job = std::move(*without_logs);
  return Find(database, options, nobody, live);
}

}  // namespace

Result<std::vector<Finding>> FindFindings(Database& database, const FindingsOptions& options) {
  return Find(database, options, nullptr);
}

Result<std::vector<Finding>> FindFindings(Database& database, const FindingsOptions& options,
                                          const RanksAnswer& ranks) {
  return Find(database, options, ranks, nullptr);
}

Result<std::vector<Finding>> FindLiveFindings(Database& database, const FindingsOptions& options,
                                              const LiveJob& live) {
  return Find(database, options, &live);
}

Result<std::vector<Finding>> FindLiveFindings(Database& database, const FindingsOptions& options,
                                              const RanksAnswer& ranks, const LiveJob& live) {
  return Find(database, options, ranks, &live);
}

}  // namespace tlparse
