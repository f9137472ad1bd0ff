// Shared by the families of findings: the run, the answers about its ranks, and phrases for ranks
// and places. Internal to findings, except FindFindings of an existing answer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/collectives/issued.h"
#include "facts/job/status.h"
#include "facts/ranks/ranks.h"
#include "findings/findings.h"
#include "findings/live.h"
#include "store/database.h"

namespace tlparse {

// As FindFindings and FindLiveFindings; `ranks` is the answer for the same run and launch.
Result<std::vector<Finding>> FindFindings(Database& database, const FindingsOptions& options,
                                          const RanksAnswer& ranks);
Result<std::vector<Finding>> FindLiveFindings(Database& database, const FindingsOptions& options,
                                              const RanksAnswer& ranks, const LiveJob& live);

struct FindingContext {
  Database& database;
  const FindingsOptions& options;
  const RanksAnswer& ranks;
  const Job& job;
  std::vector<ProcessStatus> status;  // by participant; process_id 0: its log has no record
  std::vector<Launch> launches;       // of the run
  std::vector<Finding> findings;
  IssuedJob issued;               // filled in by FindIssuedCollectives
  const LiveJob* live = nullptr;  // not null: the job runs
  // Where ranks have several roles, versions and options are compared across them, the rest within
  // each.
  bool compares_configuration = true, compares_programs = true;

  // Of some of the job's ranks, `ranks` being the answer about these; without findings.
  static FindingContext OfPart(const FindingContext& whole, const RanksAnswer& ranks);
  static Result<FindingContext> Make(Database& database, const FindingsOptions& options,
                                     const RanksAnswer& ranks);

  const ProcessStatus& StatusOf(RankIndex participant) const {
    return status[static_cast<std::size_t>(participant)];
  }
  // The compile that a participant's log ends in or after; nullptr: none.
  const JobCompile* LastCompile(RankIndex participant) const;
  std::vector<RankIndex> All() const;
  // All participants but those; both ascending.
  std::vector<RankIndex> Others(const std::vector<RankIndex>& who) const;
  bool HasRanks() const { return has_ranks_; }
  // Whether a difference to these proves nothing: the logs of all of them are damaged.
  bool AreDamaged(const std::vector<RankIndex>& who) const { return ranks.damage.AreDamaged(who); }
  bool IsCut(RankIndex participant) const {
    return ranks.damage.is_cut[static_cast<std::size_t>(participant)] != 0;
  }

  // Where the data of a participant's compressed log end early; nothing: they do not.
  const std::optional<std::int64_t>& ReadableBytes(RankIndex participant) const {
    return ranks.damage.readable_bytes[static_cast<std::size_t>(participant)];
  }

  // "process_id IN (…)": the rows of this launch.
  std::string OfLaunch() const;

  // Whether these are all ranks of the job: one without a log is not among them.
  bool AreAll(const std::vector<RankIndex>& who) const;
  // "Rank 2", "Ranks 0-3", "All 8 ranks", "Log a", "The log" (of one without rank).
  std::string Who(const std::vector<RankIndex>& who) const;
  // The same within a sentence: "rank 2".
  std::string WhoInside(const std::vector<RankIndex>& who) const;
  // Sets ranks, rank_count and logs: empty ranks for all.
  void SetRanks(Finding& finding, const std::vector<RankIndex>& who) const;
  // "0/0 forward, 1/0 block and 3 more" of compile slots, as these participants name them; sets
  // compiles and function.
  std::string SetCompiles(Finding& finding, const std::vector<std::int32_t>& slots,
                          const std::vector<RankIndex>& who) const;
  // "0/0 forward"
  std::string Title(const JobCompile& compile) const;
  const std::string& FunctionOf(const JobCompile& compile) const;
  // "forward"; "forward at model.py:12" where the job has other functions of the name.
  std::string NameOf(const FindingPlace& place, const std::string& function) const;

  Finding& Add(FindingKind kind, FindingSeverity severity) {
    Finding& finding = findings.emplace_back();
    finding.kind = kind;
    finding.severity = severity;
    return finding;
  }

 private:
  FindingContext(Database& database_in, const FindingsOptions& options_in,
                 const RanksAnswer& ranks_in)
      : database(database_in), options(options_in), ranks(ranks_in), job(ranks_in.job()) {}
  bool has_ranks_ = false;
};

using FindingFamily = Result<void> (*)(FindingContext&);
Result<void> FindFailures(FindingContext& context);
Result<void> FindFailedTraces(FindingContext& context);
inline constexpr std::string_view kMakeFxFailed = "make_fx failed";  // the cause of each of these
Result<void> FindEnds(FindingContext& context);  // FindFailures, and logs that end inside a compile
Result<void> FindStuck(FindingContext& context);  // of a job that runs
// Whether a finding of this kind stays true however the ranks of a running job continue.
bool IsSettledWhileRunning(FindingKind kind);
Result<void> FindOtherJobs(FindingContext& context);
Result<void> FindDivergences(FindingContext& context);
Result<void> FindIssuedCollectives(FindingContext& context);  // from recorder dumps
Result<void> FindLateAtCollectives(FindingContext& context);  // after FindIssuedCollectives
Result<void> SayBranches(FindingContext& context);  // adds to findings on graphs and collectives
Result<void> FindCacheCauses(FindingContext& context);
void AddSameKeys(FindingContext& context);  // parts of the latter
void AddPrecompiled(FindingContext& context);
Result<void> AddColdCaches(FindingContext& context);
// Of the compiles of these slots; nothing: the log lacks the time of one of them.
std::optional<double> CompileSeconds(const FindingContext& context, RankIndex rank,
                                     const std::vector<std::int32_t>& slots);
Result<void> FindOtherChoices(FindingContext& context);  // of autotuning, after FindCacheCauses
Result<void> FindTuningCosts(FindingContext& context);
Result<void> FindRecompiles(FindingContext& context);
Result<void> FindGraphBreaks(FindingContext& context);
Result<void> FindNothingCompiled(FindingContext& context);  // after FindGraphBreaks
// Breaks between functions of PyTorch alone, as in the forward of DistributedDataParallel, are no one's to
// mend: one of them is said.
Result<void> FoldOwnBreaks(FindingContext& context);
Result<void> FindSkippedCudaGraphs(FindingContext& context);
Result<void> FindInTorchLogs(FindingContext& context);  // of processes without a log
Result<void> FindInRas(FindingContext& context);
Result<void> FindSlowRanks(FindingContext& context);
Result<void> FindAbsentRanks(FindingContext& context);
// Ranks without a log whose recorder dump shows that they issue, without compiled graphs, what others
// issue from them; part of the former. Those that are found, ascending.
Result<std::vector<std::int64_t>> FindEagerRanks(FindingContext& context);
Result<void> FindLateRanks(FindingContext& context);
Result<void> FindFailedAllocations(FindingContext& context);  // of snapshots of the allocator
Result<void> FindMemoryGrowth(FindingContext& context);       // step by step
Result<void> FindSlowInput(FindingContext& context);          // after those that name stragglers
Result<void> FindNotFinite(FindingContext& context);          // by hashes of runs
Result<void> FindMemoryImbalance(FindingContext& context);    // between ranks
// Of several launches of a run: whether the last that had begun at that time is the context's.
bool IsOfLaunch(const FindingContext& context, std::optional<std::int64_t> time_us);
Result<void> FindGuardWaits(FindingContext& context);  // after those that name failures and ends
Result<void> FindLaunchNotes(FindingContext& context);
Result<void> FindExits(FindingContext& context);           // after those that name failures
Result<void> FindHangs(FindingContext& context);           // after all that name errors of the job
Result<void> FindHiddenFailures(FindingContext& context);  // of processes that went on
Result<void> FindImportErrors(FindingContext& context);
Result<void> FindDebugServerPlaces(FindingContext& context);

// Sets a hint of PyTorch as what to try, and the option or variable that it sets.
void SetHint(Finding& finding, std::string hint);

// Sets `rows` and `row_count` of the findings and of their evidence.
Result<void> SetRows(Database& database, std::vector<Finding>& findings);

// Sets `experiment` of the findings and of their evidence.
Result<void> SetExperiments(Database& database, std::int64_t run_id,
                            std::vector<Finding>& findings);

// Says of a finding about damaged logs alone that the damage may be its cause.
void SayDamage(const FindingContext& context, Finding& finding);

// The line of the user's code that was being run, by the stack of a compile's start; nothing: the
// log has none.
Result<std::optional<FindingPlace>> UserCaller(Database& database, std::int64_t compile_id);

// "0.27 s", "12 s", "3 min 20 s"
std::string SecondsText(std::int64_t us);
// "23:00:43.013 UTC"
std::string ClockText(std::int64_t us);
// "once", "twice", "3 times"
std::string Times(std::size_t count);
// "(1, 2, 3)": ids for a query, at most 100.
std::string IdList(const std::vector<std::int64_t>& ids);
// "a/b/c.py" → "c.py:12"
std::string PlaceText(const FindingPlace& place);

}  // namespace tlparse
