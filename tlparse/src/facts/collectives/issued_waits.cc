// Collectives that ranks wait in: who did not come, or came too late.
#include "queries/facts/collectives/issued_waits.h"

#include <fmt/format.h>

#include <algorithm>

#include "facts/collectives/issued_group.h"
#include "facts/job/job.h"

namespace tlparse {

namespace {

// " in block (train.py:46)", " at train.py:46"; empty: neither is known.
std::string CallSite(const IssuedCollective& call) {
  const std::string place = call.Place();
  if (call.function.empty()) return place.empty() ? std::string() : " at " + place;
  return fmt::format(" in {}{}", call.function, place.empty() ? "" : fmt::format(" ({})", place));
}

// "; its log has no record for 45.0 s before that", where that makes up most of the delay.
Result<std::string> SilenceBefore(Database& database, std::int64_t process_id,
                                  std::int64_t begun_us, std::int64_t delay_us) {
  // The first records of the compile may be a little older than the time that it gives itself.
  ASSIGN_OR_RETURN(const FirstRow<LastRecordBefore> last,
                   First(Query<LastRecordBefore>(
                       database, {.process_id = process_id, .time_us = begun_us - 100'000})));
  if (!last || !last->time_us) return std::string();
  const std::int64_t silence_us = begun_us - *last->time_us;
  if (silence_us < 1'000'000 || 2 * silence_us < delay_us) return std::string();
  return fmt::format("; its log has no record for {:.1f} s before that",
                     static_cast<double>(silence_us) / 1e6);
}

}  // namespace

// What the log of a rank says about the compile that holds the collective that it did not reach, or
// reached late; `others` came in time.
Result<CompileNote> GroupFinder::NoteOfCompile(std::size_t position, const IssuedCollective& waited,
                                               const Positions& others) const {
  const IssuingRank& rank = job_.ranks[group_.ranks[position]];
  if (waited.graph_id == 0 || !rank.process_id) return CompileNote();
  ASSIGN_OR_RETURN(const FirstRow<CompileOfFunction> compile,
                   tlparse::First(Query<CompileOfFunction>(
                       database_, {.process_id = *rank.process_id, .graph_id = waited.graph_id})));
  const std::string name = Ranks({position});
  if (!compile)
    return CompileNote{fmt::format("the log of {} holds no compile of {}", name, waited.function)};
  if (!compile->start_time_us) return CompileNote();
  const double issued_us = static_cast<double>(waited.start_ns) / 1e3;
  const std::int64_t begun_us = *compile->start_time_us;
  if (static_cast<double>(begun_us) > issued_us) {
    const std::string label(compile->label);
    // The others' compiles of it, if their logs have them.
    std::int64_t last_us = 0;
    Positions known;
    for (const std::size_t other : others) {
      const IssuingRank& one = job_.ranks[group_.ranks[other]];
      if (!one.process_id) continue;
      ASSIGN_OR_RETURN(
          const FirstRow<CompileOfFunction> same,
          tlparse::First(Query<CompileOfFunction>(
              database_, {.process_id = *one.process_id, .graph_id = waited.graph_id})));
      if (!same || !same->start_time_us || static_cast<double>(*same->start_time_us) > issued_us)
        continue;
      last_us = std::max(last_us, *same->start_time_us);
      known.push_back(other);
    }
    const std::string what =
        fmt::format("{} began to compile {} ({})", name, waited.function, label);
    const std::int64_t since_us = known.empty() ? static_cast<std::int64_t>(issued_us) : last_us;
    ASSIGN_OR_RETURN(const std::string silence,
                     SilenceBefore(database_, *rank.process_id, begun_us, begun_us - since_us));
    return CompileNote{
        fmt::format("{} {:.1f} s after {}{}", what, static_cast<double>(begun_us - since_us) / 1e6,
                    known.empty() ? "the others issued it" : Ranks(known), silence),
        true};
  }
  if (!compile->end_us)
    return CompileNote{fmt::format("the compile of {} ({}) had not ended on {}", waited.function,
                                   compile->label, name)};
  return CompileNote{fmt::format("{} had compiled {} ({})", name, waited.function, compile->label)};
}

// Whether the call is of a compiled function that no log of these ranks has a compile of.
Result<bool> GroupFinder::LackCompile(const Positions& positions,
                                      const IssuedCollective& waited) const {
  if (waited.graph_id == 0 || waited.function.empty()) return false;
  for (const std::size_t position : positions) {
    const IssuingRank& rank = job_.ranks[group_.ranks[position]];
    if (!rank.process_id) return false;
    ASSIGN_OR_RETURN(
        const FirstRow<CompileOfFunction> compile,
        tlparse::First(Query<CompileOfFunction>(
            database_, {.process_id = *rank.process_id, .graph_id = waited.graph_id})));
    if (compile) return false;
  }
  return true;
}

// What ranks have not done that others wait in, by the function that the user would have called.
Result<std::string> GroupFinder::NotReachedTitle(const Positions& behind,
                                                 const IssuedCollective& missed,
                                                 const Positions& waiting,
                                                 const IssuedCollective& waited) const {
  const std::string call =
      fmt::format("{} #{} of {}", missed.PrintedOp(), missed.sequence, group_.Title());
  if (missed.sequence < waited.sequence)
    return fmt::format(
        "{} had not reached {}{} when the recorder was dumped; {}", Ranks(behind), call,
        CallSite(missed),
        Open(waiting, waited.sequence, fmt::format("{} #{}", waited.PrintedOp(), waited.sequence)));
  ASSIGN_OR_RETURN(const bool is_uncalled, LackCompile(behind, waited));
  const bool are_in_it = std::all_of(waiting.begin(), waiting.end(), [&](std::size_t position) {
    return group_.At(position, waited.sequence).front()->IsInIt();
  });
  if (is_uncalled && are_in_it)
    return fmt::format("{} did not compile or call {}, in whose {} {} {}", Ranks(behind),
                       waited.function, call, Ranks(waiting),
                       waiting.size() == 1 ? "waits" : "wait");
  return fmt::format("{} had not reached {}{} when the recorder was dumped; {}", Ranks(behind),
                     call, CallSite(waited), Open(waiting, waited.sequence, "it"));
}

std::string GroupFinder::Open(const Positions& open, std::int64_t sequence,
                              std::string_view what) const {
  Positions in_it, not_started, enqueued;
  for (const std::size_t position : open) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    (one.IsInIt()                                  ? in_it
     : one.progress == IssuedProgress::kNotStarted ? not_started
                                                   : enqueued)
        .push_back(position);
  }
  std::string text;
  const auto add = [&](const Positions& ranks, std::string_view one, std::string_view several,
                       std::string_view end) {
    if (ranks.empty()) return;
    text += fmt::format("{}{} {} {}{}", text.empty() ? "" : ", ", Ranks(ranks),
                        ranks.size() == 1 ? one : several, text.empty() ? what : "it", end);
  };
  add(in_it, "waits in", "wait in", "");
  add(not_started, "has enqueued", "have enqueued", " and not started it");
  add(enqueued, "has enqueued", "have enqueued", "");
  return text;
}

// How long the waiting ranks had waited, as far as it is known.
std::string GroupFinder::Wait(const Positions& waiting, std::int64_t sequence) const {
  std::int64_t longest_ns = 0;
  for (const std::size_t position : waiting) {
    const std::int64_t start_ns = group_.At(position, sequence).front()->start_ns;
    longest_ns = std::max(longest_ns, job_.ranks[group_.ranks[position]].last_known_ns - start_ns);
  }
  const bool is_in_it = std::any_of(waiting.begin(), waiting.end(), [&](std::size_t position) {
    return group_.At(position, sequence).front()->IsInIt();
  });
  const std::string_view waited = is_in_it ? "had waited" : "had had it in their queues";
  const bool is_known = std::any_of(waiting.begin(), waiting.end(), [&](std::size_t position) {
    return KnowsEnd(position, *group_.At(position, sequence).front());
  });
  if (is_known && longest_ns < 1'000'000'000)
    return fmt::format("they {} {:.3f} s when the dumps were written", waited,
                       static_cast<double>(longest_ns) / 1e9);
  return longest_ns < 1'000'000'000 ? fmt::format("how long they {} is not in the dumps", waited)
                                    : fmt::format("they {} {:.1f} s at least", waited,
                                                  static_cast<double>(longest_ns) / 1e9);
}

void GroupFinder::SetSeverity(const Positions& waiting, std::int64_t sequence,
                              CollectiveFinding& finding) const {
  std::int64_t first_ns = INT64_MAX, known_ns = INT64_MIN;
  for (const IssuingRank& rank : job_.ranks) known_ns = std::max(known_ns, rank.last_known_ns);
  bool is_known = false, is_awaited = false;
  for (const std::size_t position : waiting) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    const std::int64_t end_ns = LastEndBefore(job_, group_.ranks[position], one.start_ns);
    first_ns = std::min(first_ns, one.IsInIt() ? one.start_ns : std::max(one.start_ns, end_ns));
    is_known |= KnowsEnd(position, one);
    is_awaited |= one.progress != IssuedProgress::kNotStarted || end_ns <= one.start_ns;
  }
  const std::int64_t timeout_ms = group_.At(waiting.front(), sequence).front()->timeout_ms;
  finding.severity = SeverityOfWait(job_, known_ns - first_ns, timeout_ms, is_known);
  if (finding.severity == FindingSeverity::kError) return;
  // Devices that were behind when it was enqueued, and have not come to it, wait for something else.
  if (!is_awaited) finding.severity = FindingSeverity::kNote;
  finding.is_of_unknown_length = !is_known;
  finding.detail += fmt::format(". {}", kMayBeRunning);
}

// Takes those out that wait in a call of another group, unless all do.
Positions GroupFinder::TakeWaitingElsewhere(Positions& behind) const {
  const auto first = std::stable_partition(behind.begin(), behind.end(), [&](std::size_t position) {
    return !WaitsElsewhere(job_, group_, group_.ranks[position]);
  });
  if (first == behind.begin()) return {};
  Positions elsewhere(first, behind.end());
  behind.erase(first, behind.end());
  return elsewhere;
}

// Of the ranks that have ended a call before one in which others wait, those whose dumps end first: the
// others may have failed with them. `behind`: those that lack that one alone.
Positions GroupFinder::FurthestBehind(const Positions& behind, std::int64_t sequence) const {
  Positions furthest = behind;
  std::int64_t last = sequence - 1;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const std::size_t rank = group_.ranks[i];
    if (Last(i) > last || Last(i) + 1 == sequence || job_.ranks[rank].is_cut ||
        blocked_.contains(rank) || !group_.issued[i].back().IsDone() ||
        WaitsElsewhere(job_, group_, rank))
      continue;
    if (Last(i) < last) furthest.clear();
    last = Last(i);
    furthest.push_back(i);
  }
  return furthest;
}

// Ranks whose dump ends before a collective that others are still inside of; `sequence` is the first such one.
Positions GroupFinder::BehindOthers(std::int64_t& sequence) const {
  Positions behind;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const std::int64_t next = Last(i) + 1;
    if (!group_.issued[i].back().IsRecorded() || job_.ranks[group_.ranks[i]].is_cut ||
        blocked_.count(group_.ranks[i]) > 0)
      continue;
    const Positions holders = Holders(next);
    const bool somebody_waits =
        std::any_of(holders.begin(), holders.end(),
                    [&](std::size_t position) { return IsCurrent(position, next); });
    if (!somebody_waits || (!behind.empty() && next > sequence)) continue;
    if (next < sequence) behind.clear();
    sequence = next;
    behind.push_back(i);
  }
  return behind;
}

Result<bool> GroupFinder::FindNotReached() {
  std::int64_t sequence = 0;
  Positions behind = BehindOthers(sequence);
  if (behind.empty()) return false;
  Positions elsewhere = TakeWaitingElsewhere(behind);
  behind = FurthestBehind(behind, sequence);
  Positions waiting;
  for (const std::size_t position : Holders(sequence)) {
    if (IsCurrent(position, sequence)) waiting.push_back(position);
  }
  const IssuedCollective& waited = *group_.At(waiting.front(), sequence).front();
  const IssuedCollective& last = group_.issued[behind.front()].back();
  const Positions holders = Holders(last.sequence + 1);
  const IssuedCollective& missed =
      holders.empty() ? waited : *group_.At(holders.front(), last.sequence + 1).front();
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveNotReached;
  ASSIGN_OR_RETURN(finding.title, NotReachedTitle(behind, missed, waiting, waited));
  finding.detail = fmt::format("{}: {}, {}. The last of {} on this group: #{} {}", Ranks(waiting),
                               waited.Title(), Wait(waiting, sequence), Ranks({behind.front()}),
                               last.sequence, last.Title());
  const std::string later = LaterElsewhere(job_, group_, group_.ranks[behind.front()]);
  if (!later.empty() && LastElsewhere(job_, group_, group_.ranks[behind.front()]).empty())
    finding.detail += ", in any group: " + later;
  ASSIGN_OR_RETURN(const CompileNote note, NoteOfCompile(behind.front(), waited, waiting));
  if (!note.text.empty()) finding.detail += "; " + note.text;
  if (later.empty() && missed.sequence == waited.sequence)
    finding.detail += LeftOutNote(behind, waiting);
  elsewhere.insert(elsewhere.begin(), behind.front());
  for (const std::size_t position : elsewhere) {
    const std::string last_call = LastElsewhere(job_, group_, group_.ranks[position]);
    if (!last_call.empty()) finding.detail += ". " + last_call;
  }
  finding.may_wait_elsewhere = std::all_of(behind.begin(), behind.end(), [&](std::size_t position) {
    return !LastElsewhere(job_, group_, group_.ranks[position]).empty();
  });
  SetSeverity(waiting, sequence, finding);
  finding.cause = note.text;
  SetPlace(finding, group_, waited);
  for (const std::size_t position : behind) finding.ranks.push_back(group_.ranks[position]);
  for (const std::size_t position : waiting) finding.waiting.push_back(group_.ranks[position]);
  if (NameWhoLacksLast(behind, finding)) finding.may_wait_elsewhere = false;
  finding.advice =
      fmt::format("look at what {} after {}: {}",
                  Ranks(behind) + (behind.size() == 1 ? " was doing" : " were doing"),
                  later.empty() || behind.size() > 1 ? fmt::format("#{}", last.sequence) : later,
                  behind.size() == 1 ? "its stack, its log" : "their stacks, their logs");
  TellExtraCall(behind, waiting, sequence, finding);
  findings_.push_back(std::move(finding));
  return true;
}

// Members of the group whose dumps are whole and hold nothing of it, while others wait in it.
bool GroupFinder::FindNeverIssued() {
  std::vector<std::size_t> absent;
  std::vector<std::int64_t> numbers;
  for (const std::size_t index : AbsentMembers(job_, group_)) {
    if (blocked_.count(index) > 0) continue;
    absent.push_back(index);
    numbers.push_back(*job_.ranks[index].rank);
  }
  Positions waiting;
  const IssuedCollective* waited = nullptr;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const IssuedCollective& first = group_.issued[i].front();
    if (!first.IsOpen() || (waited != nullptr && first.sequence != waited->sequence)) continue;
    waiting.push_back(i);
    waited = &first;
  }
  if (absent.empty() || waited == nullptr) return false;
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveNotReached;
  finding.title = fmt::format(
      "{} {} had issued nothing on {} when the recorder was dumped; {}",
      numbers.size() == 1 ? "rank" : "ranks", FormatRankRanges(numbers), group_.Title(),
      Open(waiting, waited->sequence,
           fmt::format("{} #{}{}", waited->PrintedOp(), waited->sequence, CallSite(*waited))));
  finding.detail =
      fmt::format("{}: {}, {}", Ranks(waiting), waited->Title(), Wait(waiting, waited->sequence));
  SetSeverity(waiting, waited->sequence, finding);
  SetPlace(finding, group_, *waited);
  finding.ranks = absent;
  for (const std::size_t position : waiting) finding.waiting.push_back(group_.ranks[position]);
  const std::string ranks = FormatRankRanges(numbers);
  finding.advice =
      numbers.size() == 1
          ? fmt::format("look at what rank {} was doing: its stack, its log", ranks)
          : fmt::format("look at what ranks {} were doing: their stacks, their logs", ranks);
  findings_.push_back(std::move(finding));
  return true;
}

// What a rank issued last before `sequence`; empty: nothing.
std::string GroupFinder::Before(std::size_t position, std::int64_t sequence) const {
  const std::vector<IssuedCollective>& own = group_.issued[position];
  const auto before = std::find_if(own.rbegin(), own.rend(), [&](const IssuedCollective& one) {
    return one.sequence < sequence;
  });
  if (before == own.rend()) return {};
  const std::int64_t gap_ns = group_.At(position, sequence).front()->start_ns - before->start_ns;
  return fmt::format(". Before it {} issued #{} {}, {:.1f} s earlier", Ranks({position}),
                     before->sequence, before->Title(), static_cast<double>(gap_ns) / 1e9);
}

// Ranks that came after the others' timeout: the collective had failed by then, whatever its state.
Result<bool> GroupFinder::FindLate(std::int64_t sequence) {
  const Positions holders = Holders(sequence);
  std::int64_t first_ns = INT64_MAX, timeout_ms = 0;
  std::size_t first = 0;
  for (const std::size_t position : holders) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    if (!one.IsRecorded()) return false;
    if (one.start_ns >= first_ns) continue;
    first_ns = one.start_ns;
    first = position;
    timeout_ms = one.timeout_ms;
    // It is known to have ended in time.
    if (one.end_ns > 0 && one.end_ns - one.start_ns < timeout_ms * 1'000'000) return false;
  }
  if (timeout_ms <= 0) return false;
  Positions late, in_time;
  std::int64_t latest_ns = 0;
  for (const std::size_t position : holders) {
    const IssuedCollective& one = *group_.At(position, sequence).front();
    if (one.start_ns - first_ns < timeout_ms * 1'000'000) {
      in_time.push_back(position);
      continue;
    }
    late.push_back(position);
    latest_ns = std::max(latest_ns, one.start_ns);
  }
  if (late.empty()) return false;
  const IssuedCollective& one = *group_.At(first, sequence).front();
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveNotReached;
  finding.severity = FindingSeverity::kError;
  const double gap_s = static_cast<double>(latest_ns - first_ns) / 1e9;
  finding.title =
      fmt::format("{} reached {} #{} of {} {:.1f} s after {}, beyond the timeout of {:g} s",
                  Ranks(late), one.PrintedOp(), sequence, group_.Title(), gap_s, Ranks({first}),
                  static_cast<double>(timeout_ms) / 1e3);
  finding.detail = fmt::format("{}: {}; {}: {}", Ranks({first}), one.Title(), Ranks(late),
                               group_.At(late.front(), sequence).front()->Title());
  finding.detail += Before(late.front(), sequence);
  SetPlace(finding, group_, one);
  for (const std::size_t position : late) finding.ranks.push_back(group_.ranks[position]);
  ASSIGN_OR_RETURN(const CompileNote note, NoteOfCompile(late.front(), one, in_time));
  finding.cause = note.text;
  if (note.is_late) {
    finding.title += ": " + finding.cause;
  } else if (!finding.cause.empty()) {
    finding.detail += "; " + finding.cause;
  }
  finding.advice = fmt::format("look at what {} did before it", Ranks(late));
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse
