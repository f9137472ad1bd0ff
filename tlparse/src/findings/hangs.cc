// A command that `tlparse run` judged to hang: where its processes were.
#include "facts/job/hangs.h"

#include <fmt/format.h>

#include <algorithm>

#include "findings/context.h"
#include "findings/hidden_failures.h"
#include "findings/waiting_ranks.h"

namespace tlparse {
namespace {

// Whether it hung until it was ended: no log has a later record.
bool WasLast(const FindingContext& context, const Hang& hang) {
  const bool has_later = std::any_of(
      context.status.begin(), context.status.end(),
      [&](const ProcessStatus& one) { return one.last_record_us.value_or(0) > hang.time_us; });
  return hang.was_ended || (hang.was_signalled && !has_later);
}

bool IsBefore(const Finding& finding, const Hang& hang) {
  return hang.again_us && finding.since_us && *finding.since_us < *hang.again_us;
}

// An error; else ranks that wait, as the dumps show, which the hang makes one. Nothing that came before
// the ranks that hung were started.
std::vector<Finding>::iterator FindKnownError(std::vector<Finding>& findings, const Hang& hang) {
  const auto error = std::find_if(findings.begin(), findings.end(), [&](const Finding& one) {
    return one.severity == FindingSeverity::kError && !IsBefore(one, hang);
  });
  if (error != findings.end()) return error;
  return std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.kind == FindingKind::kCollectiveNotReached || one.kind == FindingKind::kStuck;
  });
}

// The ends of ranks before they were started again.
void TakeEarlier(std::vector<Finding>& findings, const Hang& hang, Finding& finding) {
  for (auto one = findings.begin(); one != findings.end();) {
    const bool is_end =
        one->kind == FindingKind::kCrashed || one->kind == FindingKind::kStoppedFirst;
    const bool is_taken = is_end && IsBefore(*one, hang);
    if (is_taken) finding.evidence.push_back(std::move(*one));
    one = is_taken ? findings.erase(one) : one + 1;
  }
}

Finding FindingOfHang(const Hang& hang) {
  Finding finding;
  finding.kind = FindingKind::kStuck;
  finding.severity = FindingSeverity::kError;
  const std::string where = hang.ShortPlaces();
  const std::string again = hang.again_us ? "was started again, and " : "";
  finding.title = fmt::format("The command {}seemed to hang{}{}", again,
                              where.empty() ? ": " : ", ", where.empty() ? hang.why : where);
  finding.since_us = hang.time_us;
  finding.cause = "hang";
  finding.detail = fmt::format("At {}{}{}.", ClockText(hang.time_us),
                               hang.places.empty() ? "" : " " + hang.PlacesText(),
                               hang.was_ended ? "; tlparse run ended it then" : "");
  if (!where.empty()) finding.detail += fmt::format(" Why: {}.", hang.why);
  for (const std::string& thread : hang.threads) finding.detail += fmt::format(" {}.", thread);
  const auto fewest = std::min_element(
      hang.places.begin(), hang.places.end(),
      [](const HangPlace& a, const HangPlace& b) { return a.ranks.size() < b.ranks.size(); });
  if (fewest != hang.places.end()) finding.place = PlaceOfStack(fewest->where);
  if (fewest != hang.places.end())
    finding.suggestion =
        hang.places.size() > 1 && !fewest->ranks.empty()
            ? "ask which of these calls waits for one that other ranks have not made"
            : "look at what this call waits for; stacks.txt has the stacks of all threads";
  finding.query = fmt::format("SELECT profile_id, hangs FROM run_command WHERE profile_id = {}",
                              hang.profile_id);
  return finding;
}

}  // namespace

// An error that is known says why: the hang is its evidence.
Result<void> FindHangs(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Hang> hangs,
                   LoadHangs(context.database, context.job.run_id()));
  if (hangs.empty() || !IsOfLaunch(context, hangs.back().time_us)) return {};
  if (!WasLast(context, hangs.back())) return {};
  const Hang& hang = hangs.back();
  Finding finding = FindingOfHang(hang);
  const auto known = FindKnownError(context.findings, hang);
  if (known == context.findings.end()) {
    TakeEarlier(context.findings, hang, finding);
    RETURN_IF_ERROR(PutHiddenFirst(context, finding, nullptr));
    context.findings.push_back(std::move(finding));
    return {};
  }
  known->severity = FindingSeverity::kError;
  // Those that did not come may wait themselves, for the one that waits.
  if (known->kind == FindingKind::kCollectiveNotReached && hang.places.size() > 1) {
    known->detail += fmt::format("{}When it hung, {}.", known->detail.ends_with('.') ? " " : ". ",
                                 hang.PlacesText());
    known->suggestion = finding.suggestion;
    const auto absent =
        std::find_if(hang.places.begin(), hang.places.end(), [&](const HangPlace& one) {
          return !one.ranks.empty() && std::equal(one.ranks.begin(), one.ranks.end(),
                                                  known->ranks.begin(), known->ranks.end());
        });
    if (absent != hang.places.end()) {
      known->place = PlaceOfStack(absent->where);
      known->suggestion = fmt::format(
          "look at what kept {} at {}, and whether it waits itself: stacks.txt has the stacks of "
          "all threads",
          absent->who, absent->where);
    }
  }
  known->evidence.push_back(std::move(finding));
  if (known->kind != FindingKind::kCollectiveNotReached && known->kind != FindingKind::kStuck)
    return {};
  known->since_us = hang.time_us;
  RETURN_IF_ERROR(PutHiddenFirst(context, *known, nullptr));
  return {};
}

}  // namespace tlparse
