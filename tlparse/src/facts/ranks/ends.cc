#include "facts/ranks/ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/ascii.h"
#include "facts/compiles/eager_compiles.h"
#include "facts/compiles/exceptions.h"
#include "facts/job/exits.h"
#include "facts/text/shorten.h"
#include "queries/facts/ranks/ends.h"

namespace tlparse {
namespace {

constexpr std::int64_t kLongestSilenceUs = 60'000'000;  // of a rank inside a C++ compiler
constexpr std::array<std::string_view, 5> kEndKinds = {"finished", "failed", "killed", "silent",
                                                       "running"};

// Those that ran eagerly instead are none.
Result<std::vector<FailedEnd>> FailedEnds(const JobStatus& job) {
  std::vector<FailedEnd> ends;
  const bool has_failed =
      std::any_of(job.status.begin(), job.status.end(),
                  [](const ProcessStatus& one) { return one.state == RankState::kFailed; });
  if (!has_failed) return ends;
  ASSIGN_OR_RETURN(const BrokenCompiles broken, FindBrokenCompiles(job.database, job.job));
  ASSIGN_OR_RETURN(auto failures, PreparedQuery<FailureOfLastCompile>::Make(job.database));
  for (const RankIndex rank : job.All()) {
    const ProcessStatus& status = job.StatusOf(rank);
    if (status.state != RankState::kFailed || broken.eager.contains(status.compile_id)) continue;
    ASSIGN_OR_RETURN(const bool is_suppressed,
                     AreErrorsSuppressed(job.database, {status.compile_id}));
    if (is_suppressed) continue;
    FailedEnd end{.rank = rank, .since_us = INT64_MAX, .reason = {}};
    FOR_EACH_ROW(const FailureOfLastCompile& row, failures.Run({.compile_id = status.compile_id})) {
      if (row.time_us) end.since_us = std::min(end.since_us, *row.time_us);
      if (end.reason.empty()) end.reason = CauseOfException(row.type, row.reason);
    }
    if (end.since_us == INT64_MAX) end.since_us = status.last_record_us.value_or(INT64_MAX);
    ends.push_back(std::move(end));
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const FailedEnd& a, const FailedEnd& b) { return a.since_us < b.since_us; });
  return ends;
}

}  // namespace

std::string_view Name(EndKind kind) { return kEndKinds[static_cast<std::size_t>(kind)]; }

bool IsSamePlace(const JobStatus& job, const Stop& a, const Stop& b) {
  return a.position == b.position && a.is_inside == b.is_inside && a.is_backward == b.is_backward &&
         a.is_next_backward == b.is_next_backward &&
         FunctionOfCompile(job.job, *job.LastCompile(a.rank)) ==
             FunctionOfCompile(job.job, *job.LastCompile(b.rank));
}

namespace {

// Whether a rank has finished each compile, or its backward, that these end inside.
bool HasFinishedAll(const JobStatus& job, RankIndex rank, const std::vector<Stop>& stops) {
  return std::all_of(stops.begin(), stops.end(), [&](const Stop& stop) {
    if (!stop.is_inside) return true;
    const std::int32_t index = job.job.CompileOf(rank, job.LastCompile(stop.rank)->slot);
    if (index < 0) return false;
    const JobCompile& own = job.job.compiles()[static_cast<std::size_t>(index)];
    return IsFinished(own.status) && (!stop.is_backward || own.backward_duration_us > 0);
  });
}

// The ranks whose logs end outside compiles, together with those that end inside: a launcher ends all
// within a second of the first. Empty: these ended before, or went on; or fewer end inside, which
// shows that something happened there, unless one outside has a later record. Of two ranks one of which
// lacks a compile that the other went on to, none is odd: either may have been first. A rank that had
// finished before what the others end in waits for them: it is none of these.
std::vector<RankIndex> EndingWith(const JobStatus& job, const std::vector<Stop>& stops) {
  constexpr std::int64_t kGraceUs = 1'000'000;
  std::int64_t first_us = INT64_MAX, last_us = 0;
  std::vector<RankIndex> who;
  for (const Stop& stop : stops) {
    if (!stop.is_inside) continue;
    first_us = std::min(first_us, stop.last_us);
    last_us = std::max(last_us, stop.last_us);
    who.push_back(stop.rank);
  }
  std::sort(who.begin(), who.end());
  std::vector<RankIndex> outside;
  bool has_later = false;
  for (const RankIndex rank : job.All()) {
    if (std::binary_search(who.begin(), who.end(), rank)) continue;
    const std::optional<std::int64_t> own_us = job.StatusOf(rank).last_record_us;
    if (job.ReadableBytes(rank) || !own_us) return {};
    if (*own_us < first_us - kGraceUs && HasFinishedAll(job, rank, stops)) continue;
    if (*own_us < first_us - kGraceUs || *own_us > last_us + kGraceUs) return {};
    has_later |= *own_us > last_us;
    outside.push_back(rank);
  }
  // One that began its last compile when the others had finished it, and ends with them, was ended.
  const bool is_late = std::all_of(who.begin(), who.end(), [&](RankIndex rank) {
    const JobCompile& own = *job.LastCompile(rank);
    return std::all_of(outside.begin(), outside.end(), [&](RankIndex other) {
      const std::int32_t index = job.job.CompileOf(other, own.slot);
      if (index < 0) return false;
      const JobCompile& done = job.job.compiles()[static_cast<std::size_t>(index)];
      return done.start_us > 0 && IsFinished(done.status) &&
             done.start_us + static_cast<std::int64_t>(done.Seconds().value_or(0) * 1e6) <
                 own.start_us;
    });
  });
  // Of damaged logs it is not known that they end inside.
  if (job.damage.AreDamaged(who)) return {};
  const bool are_most = who.size() > 1 && who.size() >= outside.size();
  const bool is_pair = who.size() == 1 && outside.size() == 1 && stops.size() == 2 &&
                       std::none_of(stops.begin(), stops.end(),
                                    [](const Stop& stop) { return stop.is_next_backward; });
  return are_most || has_later || is_pair || is_late ? outside : std::vector<RankIndex>();
}

// Takes the ranks out that lived on after their logs' last records: inside a collective, by a dump.
Result<std::vector<RankIndex>> TakeWaiting(const JobStatus& job, std::vector<RankIndex>& outside) {
  std::map<std::int64_t, std::int64_t> waits_since_us;  // by process
  FOR_EACH_ROW(const WaitingProcess& row,
               Query<WaitingProcess>(job.database, {.run_id = job.job.run_id()}))
    waits_since_us.emplace(row.process_id, row.since_us);
  const auto first_waiting =
      std::stable_partition(outside.begin(), outside.end(), [&](RankIndex rank) {
        const ProcessStatus& status = job.StatusOf(rank);
        const auto wait = waits_since_us.find(status.process_id);
        return wait == waits_since_us.end() || wait->second < status.last_record_us;
      });
  const std::vector<RankIndex> waiting(first_waiting, outside.end());
  outside.erase(first_waiting, outside.end());
  return waiting;
}

}  // namespace

Result<EndChain> FindEndChain(const JobStatus& job) {
  EndChain chain;
  ASSIGN_OR_RETURN(chain.failures, FailedEnds(job));
  ASSIGN_OR_RETURN(std::vector<Stop> stops, FindStops(job));
  if (stops.empty()) {
    if (job.HasRanks() && !chain.failures.empty()) chain.failure = 0;
    return chain;
  }
  // A rank that waits for others stopped because of them, however early its last record is.
  const auto waits = std::stable_partition(stops.begin(), stops.end(),
                                           [](const Stop& one) { return one.awaited.empty(); });
  if (waits != stops.begin()) {
    chain.later.assign(waits, stops.end());
    stops.erase(waits, stops.end());
  }
  const std::vector<RankIndex> all = job.All();
  const auto unread = static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](RankIndex rank) { return job.ReadableBytes(rank); }));
  const Stop& first = stops.front();
  const bool has_waiting = !chain.later.empty() || !first.awaited.empty();
  chain.is_everyone =
      !has_waiting && stops.size() > 1 && stops.size() + unread == all.size() &&
      std::all_of(stops.begin(), stops.end(), [](const Stop& stop) { return stop.is_inside; });
  // Where all end inside a compile, only a silence shows who was first.
  chain.is_first_known = !chain.is_everyone;
  if (job.HasRanks() && !chain.is_everyone && !has_waiting) chain.outside = EndingWith(job, stops);
  if (!chain.outside.empty()) {
    ASSIGN_OR_RETURN(chain.waiting, TakeWaiting(job, chain.outside));
  }
  if (chain.is_everyone || !chain.outside.empty()) {
    ASSIGN_OR_RETURN(chain.is_first_known, WasSilentBeforeOthers(job, first));
  }
  // All that are known came to one collective: a rank that did not has no log.
  if (stops.size() > 1 && std::all_of(stops.begin(), stops.end(), [](const Stop& one) {
        return one.phase == kCompilerCollective && one.awaited.empty();
      })) {
    chain.is_first_known = false;
    chain.outside.clear();
  }
  if (chain.is_first_known) chain.outside.clear();
  for (const Stop& stop : stops) {
    const bool is_first =
        !chain.is_first_known ||
        (IsSamePlace(job, stop, first) && (!chain.is_everyone || stop.last_us == first.last_us));
    (is_first ? chain.first : chain.later).push_back(stop);
  }
  if (job.HasRanks() && !chain.failures.empty() &&
      chain.failures.front().since_us - first.last_us <= kLongestSilenceUs)
    chain.failure = 0;
  return chain;
}

namespace {

// "rank 1", "log train"
std::string NameInSentence(const JobStatus& job, RankIndex one) {
  const JobParticipant& participant = job.job.participants()[static_cast<std::size_t>(one)];
  return participant.rank ? "rank " + participant.name : participant.name;
}

class EndFinder {
 public:
  explicit EndFinder(const JobStatus& job) : job_(job) {}

  Result<std::vector<ProcessEnd>> Find();

 private:
  ProcessEnd OfLog(const ProcessStatus& status) const;
  void AddStops(const std::vector<Stop>& stops, bool are_first);
  void AddFailures();
  void AddExits();
  std::string WhereItEnds(const ProcessStatus& status) const;
  ProcessEnd& EndOf(RankIndex rank) { return ends_[at_.at(job_.StatusOf(rank).process_id)]; }

  const JobStatus& job_;
  EndChain chain_;
  std::vector<ProcessExit> exits_;
  std::vector<ProcessEnd> ends_;
  std::map<std::int64_t, std::size_t> at_;  // by process
};

std::string EndFinder::WhereItEnds(const ProcessStatus& status) const {
  if (status.readable_bytes)
    return "its log is damaged: what came after the last record that can be read is not known";
  if (status.compile.empty() && status.compiles_done > 0)
    return fmt::format("its log ends after {}", kCompileWithoutId);
  if (status.compile.empty()) return "its log ends without a compile";
  const std::string title =
      IsWithoutId(status.compile) ? std::string(kCompileWithoutId) : status.Title();
  if (status.state == RankState::kCompiling)
    return fmt::format("its log ends inside {}{}", title,
                       status.phase.empty() ? "" : ", in " + status.phase);
  return fmt::format("its log ends after {}{}", title,
                     status.state == RankState::kFailed ? ", which failed" : "");
}

ProcessEnd EndFinder::OfLog(const ProcessStatus& status) const {
  ProcessEnd end;
  end.process_id = status.process_id;
  end.last_us = status.last_record_us;
  end.evidence = WhereItEnds(status);
  return end;
}

// Whose end follows from another's: from the failure before them, else from that of the first.
void EndFinder::AddStops(const std::vector<Stop>& stops, bool are_first) {
  const bool has_failure = chain_.failure >= 0;
  if (!job_.HasRanks() || (!has_failure && (are_first || !chain_.is_first_known))) return;
  const RankIndex cause = has_failure
                              ? chain_.failures[static_cast<std::size_t>(chain_.failure)].rank
                              : chain_.first.front().rank;
  for (const Stop& stop : stops) {
    if (stop.rank == cause || job_.IsCut(stop.rank)) continue;
    ProcessEnd& end = EndOf(stop.rank);
    end.is_bystander = true;
    end.ended_by_process_id = job_.StatusOf(cause).process_id;
    if (!has_failure && !stop.awaited.empty()) {
      end.ended_by_process_id = job_.StatusOf(stop.awaited.front()).process_id;
      end.evidence += "; it waited there for " + job_.job.NameRanks(stop.awaited);
      continue;
    }
    end.evidence += fmt::format("; {} {} before", NameInSentence(job_, cause),
                                has_failure ? "had failed" : "had stopped");
  }
}

void EndFinder::AddFailures() {
  for (const FailedEnd& failure : chain_.failures) {
    ProcessEnd& end = EndOf(failure.rank);
    end.kind = EndKind::kFailed;
    end.evidence = fmt::format("{}{}", end.evidence,
                               failure.reason.empty() ? std::string(": the log names no exception")
                                                      : ": " + Shorten(failure.reason, 300));
  }
}

// What was seen of a process says more than its log.
void EndFinder::AddExits() {
  const ProcessExit* first = nullptr;  // the earliest that nothing else ended
  const bool has_ranks = std::any_of(exits_.begin(), exits_.end(),
                                     [](const ProcessExit& exit) { return exit.rank.has_value(); });
  for (const ProcessExit& exit : exits_) {
    const auto found = exit.process_id ? at_.find(*exit.process_id) : at_.end();
    if (found == at_.end()) continue;
    const bool is_of_job = exit.rank || !has_ranks;
    if (first == nullptr && is_of_job && exit.HasFailed() && !exit.WasAsked())
      first = &CauseOf(exits_, exit);
    ProcessEnd& end = ends_[found->second];
    end.exit_code = exit.exit_code;
    end.signal = exit.signal;
    if (exit.ended_us) end.last_us = exit.ended_us;
    const bool is_bystander = first != nullptr && first != &exit && exit.WasAsked();
    if (!exit.ended_us) {
      end.kind = EndKind::kRunning;
      end.evidence = "it lived on when the command had ended (run.json); " + end.evidence;
    } else if (exit.signal) {
      end.kind = EndKind::kKilled;
      end.is_bystander = is_bystander;
      end.ended_by_process_id.reset();
      if (is_bystander) end.ended_by_process_id = first->process_id;
      end.evidence = fmt::format("{} ended it{} (run.json); {}", SignalName(*exit.signal),
                                 exit.raised ? " after an exception, " + exit.raised->Text() : "",
                                 end.evidence);
    } else if (exit.exit_code) {
      end.kind = *exit.exit_code == 0 ? EndKind::kFinished : EndKind::kFailed;
      end.is_bystander = false;
      end.ended_by_process_id.reset();
      end.evidence =
          fmt::format("it {}ended with exit code {} (run.json); {}",
                      exit.raised ? fmt::format("raised {}, and ", exit.raised->Text()) : "",
                      *exit.exit_code, end.evidence);
    }
  }
}

Result<std::vector<ProcessEnd>> EndFinder::Find() {
  ASSIGN_OR_RETURN(chain_, FindEndChain(job_));
  ASSIGN_OR_RETURN(exits_, LoadExits(job_.database, job_.job.run_id()));
  for (const std::vector<ProcessStatus>* const part : {&job_.status, &job_.others}) {
    for (const ProcessStatus& status : *part) {
      if (status.process_id == 0) continue;
      at_.emplace(status.process_id, ends_.size());
      ends_.push_back(OfLog(status));
    }
  }
  AddFailures();
  AddStops(chain_.first, true);
  AddStops(chain_.later, false);
  AddExits();
  return std::move(ends_);
}

}  // namespace

Result<std::vector<ProcessEnd>> FindProcessEnds(const JobStatus& job) {
  return EndFinder(job).Find();
}

}  // namespace tlparse
