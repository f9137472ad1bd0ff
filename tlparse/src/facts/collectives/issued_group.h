// Finds the first problem of one process group; a part of FindIssuedProblems (issued.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "facts/collectives/issued.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {

using Positions = std::vector<std::size_t>;  // in IssuedGroup::ranks

// How far a rank was with the compile of the graph that issues a collective; empty: not known.
struct CompileNote {
  std::string text;
  bool is_late = false;  // it began after others had issued the collective
};

class GroupFinder {
 public:
  // `blocked`: ranks that are inside a call that not every rank that it needs has issued: they are
  // late in other groups because they wait. All outlive the finder.
  GroupFinder(Database& database, const IssuedJob& job, const IssuedGroup& group,
              const std::set<std::size_t>& blocked, std::vector<CollectiveFinding>& findings)
      : database_(database), job_(job), group_(group), blocked_(blocked), findings_(findings) {}

  // Adds at most one finding: later differences follow from the first one.
  Result<void> Run();

 private:
  std::string Ranks(const Positions& positions) const;
  std::int64_t First(std::size_t position) const {
    return group_.issued[position].front().sequence;
  }
  std::int64_t Last(std::size_t position) const { return group_.issued[position].back().sequence; }
  // The classes of ranks that hold `sequence`, by what must be alike; the reference first.
  std::vector<Positions> Classes(std::int64_t sequence) const;
  // issued_pairs.cc: whether a finding was added.
  Result<bool> FindOther(std::int64_t sequence);
  bool IsBegun(const std::vector<Positions>& classes, std::int64_t sequence) const;
  std::size_t OddMember(const std::vector<Positions>& classes, std::int64_t sequence) const;
  const IssuedCollective& Member(std::size_t position, std::int64_t sequence,
                                 std::size_t member) const;
  std::string DifferingParts(const std::vector<Positions>& classes, std::int64_t sequence,
                             std::size_t member) const;
  std::string DifferenceTitle(const std::vector<Positions>& classes, std::int64_t sequence,
                              std::size_t member) const;
  bool FindMispaired();
  // issued_shift.cc: whether the second of the classes had issued one call more or less before: then `finding`
  // becomes one of that call.
  bool TellShift(const std::vector<Positions>& classes, std::int64_t sequence,
                 CollectiveFinding& finding) const;
  // The same, where it had left out several, and issued calls of other lines since.
  bool TellLeftOut(const std::vector<Positions>& classes, std::int64_t sequence,
                   CollectiveFinding& finding) const;
  // The only call of a rank under a number; null: there is none, or it is a batch.
  const IssuedCollective* Single(std::size_t position, std::int64_t number) const;
  const IssuedCollective* ExpectedAt(std::size_t position, std::int64_t number) const;
  // issued_threads.cc: whether a finding was added, of two classes of ranks that issued the calls of two
  // threads in another order.
  Result<bool> FindThreads(const std::vector<Positions>& classes, std::int64_t sequence);
  std::size_t Reference() const;
  bool FindMispairedWith(std::size_t reference, std::size_t position);
  // issued_waits.cc: whether a finding was added.
  Result<bool> FindNotReached();
  Positions BehindOthers(std::int64_t& sequence) const;
  Positions TakeWaitingElsewhere(Positions& behind) const;
  // issued_extra.cc: `finding`, of a rank that waits for all others, becomes one of a call that
  // this rank has issued once more.
  void TellExtraCall(const Positions& behind, const Positions& waiting, std::int64_t sequence,
                     CollectiveFinding& finding) const;
  bool FindNeverIssued();
  Result<bool> FindLate(std::int64_t sequence);
  // issued_stuck.cc: whether a finding was added.
  bool FindUnknownPlace();
  bool IsIn(std::int64_t rank) const;  // it issued something on the group
  bool FindStuck();
  // Whether it has not ended there, nor waits in a stream behind an earlier one.
  bool IsCurrent(std::size_t position, std::int64_t sequence) const;
  std::int64_t WaitedTogether(std::int64_t sequence) const;
  std::string WhyUnknown(std::size_t index) const;
  std::map<std::string, std::vector<std::int64_t>> UnknownRanks(std::int64_t sequence) const;
  Result<CompileNote> NoteOfCompile(std::size_t position, const IssuedCollective& waited,
                                    const Positions& others) const;
  Result<bool> LackCompile(const Positions& positions, const IssuedCollective& waited) const;
  Result<std::string> NotReachedTitle(const Positions& behind, const IssuedCollective& missed,
                                      const Positions& waiting,
                                      const IssuedCollective& waited) const;
  // issued_extra.cc: ". All calls of this group look alike: …", where they do; empty: they do not.
  std::string LeftOutNote(const Positions& behind, const Positions& waiting) const;
  Positions FurthestBehind(const Positions& behind, std::int64_t sequence) const;
  bool NameWhoLacksLast(const Positions& behind, CollectiveFinding& finding) const;
  Positions Holders(std::int64_t sequence) const;
  std::string Wait(const Positions& waiting, std::int64_t sequence) const;
  // Whether a dump shows when it was written: it finds then that a call has started.
  bool KnowsEnd(std::size_t position, const IssuedCollective& one) const {
    return one.progress == IssuedProgress::kStarted &&
           job_.ranks[group_.ranks[position]].last_known_ns > one.start_ns;
  }
  // An error after a long wait. Any job that runs has moments in which a rank has not come yet.
  void SetSeverity(const Positions& waiting, std::int64_t sequence,
                   CollectiveFinding& finding) const;
  // "ranks 0-2 wait in it", "rank 0 waits in all_reduce #3, ranks 1,2 have enqueued it".
  std::string Open(const Positions& open, std::int64_t sequence, std::string_view what) const;
  std::string Before(std::size_t position, std::int64_t sequence) const;

  Database& database_;
  const IssuedJob& job_;
  const IssuedGroup& group_;
  const std::set<std::size_t>& blocked_;
  std::vector<CollectiveFinding>& findings_;
};

// IssuedJob::pace.
void SetPace(IssuedJob& job);
bool KnowsPace(const IssuedJob& job);  // it has calls enough

// Whether ranks wait for longer than any moment of this job that runs: for nine tenths of the call's
// timeout (0: unknown), or three times as long as the usual pauses between its calls are and ten seconds;
// ten times as long, and as long as all of its calls took, if that is less. Of a job with few calls ten
// seconds alone.
bool IsLongWait(const IssuedJob& job, std::int64_t waited_ns, std::int64_t timeout_ms);
// `is_known`: the dumps show how long it was.
FindingSeverity SeverityOfWait(const IssuedJob& job, std::int64_t waited_ns,
                               std::int64_t timeout_ms, bool is_known);
inline constexpr std::string_view kMayBeRunning = "A dump of a job that runs can look the same";

// Members of the group (pg_config) whose dumps are whole and hold nothing of it; indices into
// IssuedJob::ranks.
std::vector<std::size_t> AbsentMembers(const IssuedJob& job, const IssuedGroup& group);

// When the last of the calls ended that a rank had issued before that time, in any group; 0: no end is
// known.
std::int64_t LastEndBefore(const IssuedJob& job, std::size_t rank, std::int64_t time_ns);

// Whether a rank has a call in another group than that one that it issued before that time and that has not
// ended, or such a send or receive.
bool HasEarlierOpen(const IssuedJob& job, const IssuedGroup* group, std::size_t rank,
                    std::int64_t time_ns);

// Sets group, number, graph, line and time of a finding to those of a call.
void SetPlace(CollectiveFinding& finding, const IssuedGroup& group, const IssuedCollective& one);

// "The last call of rank 1 in any group is #1 all_reduce of group dp (4), which no other dump has";
// empty: its last call is of this group, or other ranks have it.
std::string LastElsewhere(const IssuedJob& job, const IssuedGroup& group, std::size_t rank);
// "#7 recv 2<-0 [8] Float from train.py:10 of group pp (1)": what a rank issued last, in whatever group, after
// its last call of this one; empty: nothing.
std::string LaterElsewhere(const IssuedJob& job, const IssuedGroup& group, std::size_t rank);
// That call, and the other ranks of its group, if the dumps of all of them are there and lack it.
struct LackedCall {
  const IssuedGroup* group = nullptr;
  const IssuedCollective* call = nullptr;
  std::vector<std::size_t> ranks;  // indices into IssuedJob::ranks
};
std::optional<LackedCall> LackedByOthers(const IssuedJob& job, const IssuedGroup& group,
                                         std::size_t rank);
// Whether that call has not ended: the rank is late in `group` because it waits there.
bool WaitsElsewhere(const IssuedJob& job, const IssuedGroup& group, std::size_t rank);

// "ranks 0-2", of indices into IssuedJob::ranks.
std::string RanksText(const IssuedJob& job, const std::vector<std::size_t>& indices);

// "Rank 2 …" of "rank 2 …". Names of files stay as they are.
std::string Capital(std::string text);

using RankSet = std::set<std::size_t>;  // indices into IssuedJob::ranks

// Of one rank's calls on a group: the one that it is inside of; nullptr: none, or that is not known. Of
// calls that wait in the stream of a device, the first.
const IssuedCollective* CurrentOf(const std::vector<IssuedCollective>& own);

// Ranks whose last call in any group waits, on the devices of all ranks of its group, behind one that
// all have enqueued: they are late in other groups for that.
RankSet InsideTogether(const IssuedJob& job);

// A collective that some ranks are inside of and others had not issued.
struct OpenWait {
  const IssuedGroup* group;
  IssuedLine line;
  RankSet waiting, missing;
  // Those that are missing have enqueued it, and their devices have not started it.
  bool IsOfDevices() const {
    return !missing.empty() && std::includes(line.not_started.begin(), line.not_started.end(),
                                             missing.begin(), missing.end());
  }
};
std::vector<OpenWait> OpenWaits(const IssuedJob& job);

// Ranks in calls of groups of which a member is unknown: it may be the one that has not come.
RankSet WaitForUnknown(const IssuedJob& job);

// A send or receive that its rank has not ended, and that the peer had not issued the other end of.
struct MessageWait {
  const MessageGroup* group = nullptr;
  const IssuedMessage* message = nullptr;
  std::size_t rank = 0;  // index into IssuedJob::ranks
  std::size_t peer = 0;
};
// In the order in which they were issued. Where a ring has wrapped, only those of which the peer has no other
// end that has not ended.
std::vector<MessageWait> MessageWaits(const IssuedJob& job);

// Adds what is wrong with sends and receives: who has not issued the other end of one, and who waits
// for whom. `collectives`: OpenWaits.
void FindMessageWaits(const IssuedJob& job, const std::vector<MessageWait>& waits,
                      const std::vector<OpenWait>& collectives,
                      std::vector<CollectiveFinding>& findings);

// Where one batch of the ranks that wait for each other has another number of sends than the peer's has of
// receives, and all others agree: `finding` becomes one of that batch.
void NameOddBatch(const IssuedJob& job, const std::vector<const MessageWait*>& waits,
                  CollectiveFinding& finding);

// What tells whether ranks that were inside a call hung there.
inline constexpr std::string_view kLookForWatchdog =
    "see in the standard error of the ranks whether NCCL's watchdog timed out (tlparse reads it)";

// Adds what the counts of dumps without entries show.
Result<void> FindCounted(Database& database, const IssuedJob& job,
                         std::vector<CollectiveFinding>& findings);

// Adds at most one finding: ranks that wait in collectives for ranks that wait in others for them.
// These are all among the waiting ones, so that no GroupFinder names them; what it found to be stuck
// in these collectives is removed. Whether there are any.
bool FindCycle(const IssuedJob& job, std::vector<OpenWait> waits,
               std::vector<CollectiveFinding>& findings);

// Adds a finding of a call that one rank left out or added: all other ranks issue the same calls in the
// same order over all groups, and this rank does too, before and after that call. Does nothing if another
// finding reports different calls. Returns whether a finding was added.
bool FindOddProgram(const IssuedJob& job, std::vector<CollectiveFinding>& findings);

// Collectives of two groups that two ranks issued in opposite orders, from one thread each.
void FindOrder(const IssuedJob& job, const std::set<std::size_t>& waiting,
               std::vector<CollectiveFinding>& findings);

}  // namespace tlparse
