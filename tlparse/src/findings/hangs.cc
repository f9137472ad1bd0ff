// A command that `tlparse run` judged to hang: where its processes were.
#include "facts/job/hangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "facts/collectives/running_note.h"
#include "facts/job/exits.h"
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

// "rank 1 in recv from rank 2 at pipe.py:10".
std::string TextOf(const HangWait& wait, std::string_view is = "") {
  const std::optional<FindingPlace> place = PlaceOfStack(wait.where);
  return fmt::format("rank {} {}in {}{}", wait.rank, is, wait.text,
                     place ? " at " + PlaceText(*place) : std::string());
}

// Whether one of two ranks sends to the other, which waits to receive from it with another tag.
bool HaveOtherTags(const Hang& hang, const std::vector<std::int64_t>& pair) {
  if (pair.size() != 2) return false;
  const HangWait* const a = hang.WaitOf(pair[0]);
  const HangWait* const b = hang.WaitOf(pair[1]);
  return a != nullptr && b != nullptr && a->IsSend() != b->IsSend() && a->tag != b->tag;
}

// What the children of the only rank at a place do, if its main thread waits for them: where they are all at
// one line, that is the place.
void SayChildren(const Hang& hang, const HangPlace& at, Finding& finding) {
  constexpr std::size_t kMost = 4;
  if (at.ranks.size() != 1 || !at.WaitsForChild()) return;
  std::vector<HangPlace> places;
  for (const HangChild& child : hang.children) {
    if (child.rank != at.ranks.front()) continue;
    const std::string who = fmt::format("pid {}", child.pid);
    const auto known = std::find_if(places.begin(), places.end(),
                                    [&](const HangPlace& one) { return one.where == child.where; });
    if (known != places.end())
      known->AddProcess(who);
    else
      places.push_back({{}, who, child.where, {}});
  }
  if (places.empty() || places.size() > kMost) return;
  for (const HangPlace& one : places)
    finding.detail +=
        fmt::format(" {} of {}, {}, {} at {}.", one.HasSeveral() ? "Children" : "A child", at.who,
                    one.who, one.HasSeveral() ? "were" : "was", one.where);
  if (places.size() > 1) return;
  const HangPlace& child = places.front();
  finding.title += fmt::format("; {} of {} {} {}", child.HasSeveral() ? "children" : "a child",
                               at.who, child.HasSeveral() ? "were" : "was", child.ShortWhere());
  finding.place = PlaceOfStack(child.where);
  finding.suggestion = fmt::format(
      "look at what kept {} at {}, for which {} waits: stacks.txt has the stacks of all threads",
      child.who, child.where, at.who);
}

// Who waits for whom, where sends and receives say it; `done`: ranks that had ended with exit code 0.
void SayAwaited(Finding& finding, const Hang& hang, const std::vector<std::int64_t>& done) {
  constexpr std::size_t kMostNamed = 4;
  const std::vector<std::int64_t> awaited = hang.Awaited();
  if (awaited.empty()) return;
  finding.ranks = awaited;
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.rank_count = awaited.size();
  std::string waits;
  std::size_t count = 0;
  for (const HangWait& one : hang.waits) {
    const bool is_in_ring = std::find(awaited.begin(), awaited.end(), one.rank) != awaited.end();
    const bool is_named = awaited.size() > 1 ? is_in_ring : one.peer == awaited.front();
    if (is_named && ++count <= kMostNamed) waits += (waits.empty() ? "" : ", ") + TextOf(one);
  }
  if (count > kMostNamed) waits += fmt::format(" and {} more", count - kMostNamed);
  std::string who = RanksText(finding.ranks);
  who[0] = 'R';
  if (awaited.size() > 1) {
    finding.title = fmt::format("{} wait for each other: {}", who, waits);
    finding.suggestion =
        "compare the order of their sends and receives: each waits for a call that the next one "
        "makes later, or not at all";
    if (HaveOtherTags(hang, awaited)) {
      finding.title += ": their tags differ";
      finding.suggestion = "compare the tags: a receive takes a message with its own tag alone";
    }
  } else {
    const bool is_done = std::find(done.begin(), done.end(), awaited.front()) != done.end();
    const HangPlace* const at = hang.PlaceOf(awaited.front());
    finding.title = fmt::format("{} is waited for: {}", who, waits);
    if (is_done) finding.title = fmt::format("{} had ended with exit code 0; {}", who, waits);
    if (!is_done && at != nullptr)
      finding.title = fmt::format("{} was {}; {}", who, at->ShortWhere(), waits);
    finding.place = at == nullptr ? std::nullopt : PlaceOfStack(at->where);
    finding.suggestion =
        fmt::format("look for what the others wait for, which rank {} did not do", awaited.front());
  }
  for (const HangWait& one : hang.waits)
    finding.detail += fmt::format(" R{}.", TextOf(one, "was ").substr(1));
}

// Ranks that used the CPU, while the others did not.
void SayBusy(Finding& finding, Hang hang) {
  const HangPlace* const at = hang.busy.empty() ? nullptr : hang.PlaceOf(hang.busy.front());
  if (at == nullptr) return;
  const HangPlace busy = *at;
  std::erase_if(hang.places, [&](const HangPlace& one) { return one.where == busy.where; });
  std::string who = RanksText(hang.busy);
  finding.ranks = hang.busy;
  finding.rank_count = hang.busy.size();
  finding.suggestion = fmt::format("look at how long {} takes there, and whether it ends", who);
  who[0] = 'R';
  finding.title =
      fmt::format("{} {} busy {}", who, hang.busy.size() > 1 ? "were" : "was", busy.ShortWhere());
  if (!hang.places.empty())
    finding.title += fmt::format(" while the others waited, {}", hang.ShortPlaces());
  finding.place = PlaceOfStack(busy.where);
}

// Ranks that were busy for long, and were where others are when that was asked: no longer.
bool HasPassed(const Hang& hang) {
  const HangPlace* const at = hang.busy.empty() ? nullptr : hang.PlaceOf(hang.busy.front());
  return at != nullptr && std::any_of(at->ranks.begin(), at->ranks.end(), [&](std::int64_t rank) {
           return std::find(hang.busy.begin(), hang.busy.end(), rank) == hang.busy.end();
         });
}

// Ranks that had ended as if they were done, when others hung.
std::vector<std::int64_t> DoneBefore(const std::vector<ProcessExit>& exits, const Hang& hang) {
  std::set<std::int64_t> done;
  for (const ProcessExit& one : exits) {
    if (one.rank && one.exit_code == 0 && one.ended_us && *one.ended_us < hang.time_us &&
        *one.ended_us >= hang.again_us.value_or(0))
      done.insert(*one.rank);
  }
  for (const HangPlace& place : hang.places)
    for (const std::int64_t rank : place.ranks) done.erase(rank);
  return {done.begin(), done.end()};
}

void SayDone(Finding& finding, const Hang& hang, const std::vector<std::int64_t>& done) {
  if (done.empty() || hang.places.empty() || hang.places.front().ranks.empty()) return;
  const std::string where = hang.ShortPlaces();
  std::string who = RanksText(done);
  who[0] = 'R';
  finding.ranks = done;
  finding.rank_count = done.size();
  finding.title = fmt::format("{} had ended with exit code 0 when the others hung{}{}", who,
                              where.empty() ? "" : ", ", where);
  finding.suggestion = fmt::format(
      "look for what ends {} early: fewer batches, a return or sys.exit that the others do not "
      "reach",
      RanksText(done));
}

// Ranks that are elsewhere, while all the others wait for every rank to join the job.
void SayNotJoined(Finding& finding, const Hang& hang) {
  constexpr std::string_view kJoin = ", which called init_process_group";
  std::vector<std::int64_t> waiting, absent;
  std::string where;
  const HangPlace* at = nullptr;
  for (const HangPlace& place : hang.places) {
    const bool waits = place.where.ends_with(kJoin);
    std::vector<std::int64_t>& side = waits ? waiting : absent;
    side.insert(side.end(), place.ranks.begin(), place.ranks.end());
    if (waits) where = PlaceText(*PlaceOfStack(place.where));
    if (!waits && at == nullptr) at = &place;
  }
  if (waiting.empty() || at == nullptr || absent.size() != at->ranks.size() || absent.empty())
    return;
  std::sort(absent.begin(), absent.end());
  std::sort(waiting.begin(), waiting.end());
  finding.ranks = absent;
  finding.rank_count = absent.size();
  finding.place = PlaceOfStack(at->where);
  std::string who = RanksText(absent);
  who[0] = 'R';
  finding.title =
      fmt::format("{} {} {} and did not join the job: {} waited in init_process_group at {}", who,
                  absent.size() > 1 ? "were" : "was", at->ShortWhere(), RanksText(waiting), where);
  finding.suggestion = fmt::format("look at what {} waits for at {}", RanksText(absent), at->where);
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
  if (fewest != hang.places.end())
    finding.place =
        PlaceOfStack(fewest->threads.size() == 1 ? fewest->threads.front() : fewest->where);
  if (fewest != hang.places.end())
    finding.suggestion =
        hang.places.size() > 1 && !fewest->ranks.empty()
            ? "ask which of these calls waits for one that other ranks have not made"
            : "look at what this call waits for; stacks.txt has the stacks of all threads";
  if (fewest != hang.places.end()) SayChildren(hang, *fewest, finding);
  finding.query = fmt::format("SELECT profile_id, hangs FROM run_command WHERE profile_id = {}",
                              hang.profile_id);
  return finding;
}

// What to do about a rank that the others wait for.
std::string AdviceFor(const HangPlace& absent) {
  if (absent.IsInDebugger())
    return fmt::format(
        "take out the breakpoint at {}: {} {} in Python's debugger, which waits for input",
        absent.where.substr(0, absent.where.find(" in ")), absent.who,
        absent.HasSeveral() ? "were" : "was");
  return fmt::format(
      "look at what kept {} at {}, and whether it waits itself: stacks.txt has the stacks of all "
      "threads",
      absent.who, absent.where);
}

}  // namespace

// An error that is known says why: the hang is its evidence.
Result<void> FindHangs(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Hang> hangs,
                   LoadHangs(context.database, context.job.run_id()));
  if (hangs.empty() || !IsOfLaunch(context, hangs.back().time_us)) return {};
  if (!WasLast(context, hangs.back()) || HasPassed(hangs.back())) return {};
  const Hang& hang = hangs.back();
  Finding finding = FindingOfHang(hang);
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits,
                   LoadExits(context.database, context.job.run_id()));
  const std::vector<std::int64_t> done = DoneBefore(exits, hang);
  SayDone(finding, hang, done);
  SayAwaited(finding, hang, done);
  SayBusy(finding, hang);
  if (hang.busy.empty() && hang.waits.empty() && done.empty()) SayNotJoined(finding, hang);
  const auto known = FindKnownError(context.findings, hang);
  if (known == context.findings.end()) {
    TakeEarlier(context.findings, hang, finding);
    RETURN_IF_ERROR(PutHiddenFirst(context, finding, nullptr));
    context.findings.push_back(std::move(finding));
    return {};
  }
  const bool do_wait = known->kind == FindingKind::kCollectiveNotReached && !known->ranks.empty() &&
                       std::all_of(known->ranks.begin(), known->ranks.end(),
                                   [&](std::int64_t rank) { return hang.WaitOf(rank) != nullptr; });
  if (do_wait) {  // for what another has not sent, or not received
    finding.evidence.push_back(std::exchange(*known, {}));
    *known = std::move(finding);
    RETURN_IF_ERROR(PutHiddenFirst(context, *known, nullptr));
    return {};
  }
  known->severity = FindingSeverity::kError;
  TakeOutMayRun(known->detail);
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
      known->suggestion = AdviceFor(*absent);
      SayChildren(hang, *absent, *known);
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
