#include "findings/role_contexts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "facts/job/role_members.h"

namespace tlparse {
namespace {

// Whether a finding says that ranks differ in what they ran: expected of ranks with different roles.
bool IsOfRole(const Finding& finding) {
  if (finding.needs_no_role) return false;
  switch (finding.kind) {
    case FindingKind::kInputDivergence:
    case FindingKind::kGraphDivergence:
    case FindingKind::kGraphBreakDivergence:
    case FindingKind::kCodeDivergence:
    case FindingKind::kCollectiveDivergence:
    case FindingKind::kExecutionDivergence:
    case FindingKind::kExtraCompile:
    case FindingKind::kMissingCompile:
    case FindingKind::kSlowRank:
    case FindingKind::kLateRank:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<RoleComparisons> RoleComparisons::Make(FindingContext& job) {
  RoleComparisons comparisons(job);
  ASSIGN_OR_RETURN(comparisons.roles_, LoadRoles(job.database, job.job, job.ranks.damage));
  if (!comparisons.HasSeveral()) return comparisons;
  for (const Role& role : *comparisons.roles_) {
    if (role.members.size() < 2) continue;
    ASSIGN_OR_RETURN(RanksAnswer answer, AnalyzeRanksPart(job.database, job.ranks, role.members));
    comparisons.answers_.push_back(std::move(answer));
  }
  return comparisons;
}

Result<void> RoleComparisons::Run(FindingFamily family) {
  if (!HasSeveral()) {
    const std::size_t first = job_.findings.size();
    RETURN_IF_ERROR(family(job_));
    if (!roles_->empty() && !roles_->front().is_sure) MakeNotes(first);
    return {};
  }
  for (const RanksAnswer& answer : answers_) {
    FindingContext context = FindingContext::OfPart(job_, answer);
    std::swap(context.findings, job_.findings);
    const Result<void> result = family(context);
    std::swap(context.findings, job_.findings);
    RETURN_IF_ERROR(result);
  }
  return {};
}

Result<void> RoleComparisons::RunAcrossRoles(FindingFamily family) {
  job_.compares_programs = false;
  const Result<void> result = family(job_);
  job_.compares_programs = true;
  return result;
}

void RoleComparisons::MakeNotes(std::size_t first) const {
  // Of two ranks one may be the stage that waits while the other compiles.
  if (job_.job.participants().size() == 2)
    job_.findings.erase(
        std::remove_if(job_.findings.begin() + static_cast<std::ptrdiff_t>(first),
                       job_.findings.end(),
                       [](const Finding& one) { return one.kind == FindingKind::kLateRank; }),
        job_.findings.end());
  for (std::size_t i = first; i < job_.findings.size(); ++i) {
    Finding& finding = job_.findings[i];
    if (!IsOfRole(finding) || finding.severity == FindingSeverity::kNote) continue;
    finding.severity = FindingSeverity::kNote;
    finding.detail += finding.detail.empty() || finding.detail.ends_with(' ') ? "" : " ";
    finding.detail += "Whether these ranks are meant to do equal work is not in the inputs.";
  }
}

void RoleComparisons::NameRoles(Finding& finding) const {
  if (!HasSeveral()) return;
  for (const Role& role : *roles_) {
    const bool is_named =
        std::any_of(role.members.begin(), role.members.end(), [&](RankIndex member) {
          const auto& rank = job_.job.participants()[static_cast<std::size_t>(member)].rank;
          return rank && std::binary_search(finding.ranks.begin(), finding.ranks.end(), *rank);
        });
    if (is_named) finding.roles.push_back(role.name);
  }
}

}  // namespace tlparse
