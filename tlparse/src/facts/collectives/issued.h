// The collectives that ranks issued, from flight-recorder dumps, profiles and libtrace, by process
// group: which rank did not reach one, issued another one, or was late.
//
// Collectives of one process group are matched by their sequence number, which is the same on all
// its ranks. Only what the dumps show is reported: a rank whose dump lacks a number because its
// ring had wrapped, or because it is cut or damaged, is unknown at that number, not missing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/collectives/profiled_messages.h"
#include "facts/finding_kind.h"
#include "inputs/join/collective_slices.h"
#include "store/database.h"

namespace tlparse {

// How far a collective came, as far as its file tells.
enum class IssuedProgress : std::uint8_t {
  kIssued,      // a profile without its device kernel: whether it ended is not known
  kOpen,        // not ended; whether it was started is not recorded
  kScheduled,   // enqueued, not ended: the dump does not record when collectives start
  kNotStarted,  // enqueued, not started on the device
  kStarted,     // not ended
  kRetired,     // ended; whether it completed is not known
  kCompleted,
};

// One collective that one rank issued.
struct IssuedCollective {
  std::int64_t run_row_id = 0;  // collective_run.id
  std::int64_t stack_id = 0;    // of the recorder's entry; 0: it has none
  std::int64_t sequence = 0;
  std::string op;         // as recorded: nccl:all_reduce
  std::string plain_op;   // PlainCollective: allreduce
  std::string shapes;     // JSON list of lists; empty: unknown
  std::string dtype;      // empty: unknown
  std::string reduce_op;  // empty: unknown, or reduces nothing
  std::string state;      // scheduled, started, completed; empty: unknown
  IssuedSource source = IssuedSource::kDump;
  IssuedProgress progress = IssuedProgress::kIssued;
  std::int64_t start_ns = 0;         // when the CPU issued it
  std::int64_t device_start_ns = 0;  // when its kernel began; 0: not in the file
  // When the rank came to it, and waits from there: its kernel, where the files of all ranks have that of
  // their call; otherwise its CPU.
  std::int64_t arrived_ns = 0;
  std::int64_t end_ns = 0;      // 0: unknown
  std::int64_t timeout_ms = 0;  // 0: unknown
  std::int64_t graph_id = 0;    // 0: outside compiled graphs, or not joined
  std::string label;            // of the graph's compile: 1/0
  std::string function;         // that was compiled
  std::string file;             // the innermost line outside of PyTorch; empty: unknown
  std::int64_t line = 0;
  std::string
      caller_file;  // the user's line that led there, where `file` is of a library; else empty
  std::int64_t caller_line = 0;
  const std::string& UserFile() const { return caller_file.empty() ? file : caller_file; }
  std::int64_t code_line = 0;  // of the generated code; 0: unknown
  std::string thread;
  std::string join_key;
  bool is_p2p = false;  // a send or a receive; its number counts these alone
  bool IsRecorded() const { return source == IssuedSource::kDump; }
  bool IsCompleted() const { return progress == IssuedProgress::kCompleted; }
  bool IsDone() const { return IsCompleted() || progress == IssuedProgress::kRetired; }
  // Its dump shows that it had not ended.
  bool IsOpen() const { return IsRecorded() && !IsDone(); }
  // Not ended, and in the stream of a device, in which calls end in their order.
  bool IsOnDevice() const { return IsOpen() && progress != IssuedProgress::kOpen; }
  // On the device, or as far as a backend without one tells: not only enqueued.
  bool IsInIt() const {
    return progress == IssuedProgress::kOpen || progress == IssuedProgress::kStarted;
  }
  // Whether both may be one call of the program: by op, line, function and reduction. What the file
  // of one of them does not have is no difference.
  bool MayBeCallOf(const IssuedCollective& other) const;
  // The same, and by name, sizes, type and compile as well.
  bool MayLookLike(const IssuedCollective& other) const;
  // "all_reduce [8, 16] Float 'sum' from graph 1/0, fr_job.py:46"
  std::string Title() const;
  // "fr_job.py:46"; "fr_job.py:46 (in state.py:412)" where a library made it; empty: unknown
  std::string Place() const;
  // "all_reduce"; of an entry without a name "collective"
  std::string PrintedOp() const { return op.empty() ? "collective" : op.substr(op.rfind(':') + 1); }
};

// A rank, or a dump that names none.
struct IssuingRank {
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> process_id;
  std::string path;      // of its first dump
  std::string name;      // "3", or the file's name
  bool is_whole = true;  // the ring has not wrapped: the dump begins with the first collective
  std::int64_t last_known_ns = 0;  // the latest time in its files
  bool has_file = false;           // a dump of the flight recorder; where there are none, a profile
  bool is_empty = false;           // its dumps are whole and have no entry of any group
  // Of such a rank, by the pg_status of its dump, which counts what was never recorded or was dropped: the
  // calls of all groups, and the last one of c10d's group of all ranks.
  std::int64_t counted_calls = 0, last_of_all = 0;
  // When it issued the first send or receive, or batch of them, that has not ended and of which the dump does
  // not tell the peer; 0: none.
  std::int64_t open_message_ns = 0;
  bool is_cut = false;  // one of its dumps is in IssuedJob::cut_dumps: what it lacks is unknown
};

// The collectives of one group, by rank.
struct IssuedGroup {
  std::string name;
  std::string description;  // dp, default_pg; empty: unknown
  // Its ranks according to a dump; empty: unknown (Gloo of 2.14 does not log them).
  std::vector<std::int64_t> members;
  // That issued something; indices into IssuedJob::ranks, ascending.
  std::vector<std::size_t> ranks;
  bool has_members = false;  // known from a dump, the group's name, or the code in the logs
  // Members whose collectives are unknown: without a dump; or their dump has no entry of the group,
  // and it is cut or has wrapped, or other ranks have ended calls of the group.
  std::vector<std::size_t> unknown;
  // By the position in `ranks`: ascending by sequence, of the last epoch (numbers start again when
  // a group is reset). Several with one number were coalesced.
  std::vector<std::vector<IssuedCollective>> issued;
  std::string Title() const;  // "group dp (1)"
  // Those with that number of the rank at that position; empty if there is none.
  std::vector<const IssuedCollective*> At(std::size_t position, std::int64_t sequence) const;
};

// A send or a receive. Ranks are those of the group.
struct IssuedMessage {
  IssuedCollective call;
  bool is_send = false;
  std::int64_t own = 0, peer = 0;
  std::size_t ordinal = 0;  // 1-based, of the calls of one direction between the two
};

// The sends and receives of one group, from recorder dumps.
struct MessageGroup {
  std::string name;
  std::string description;
  std::vector<std::size_t> ranks;  // that issued some; indices into IssuedJob::ranks, ascending
  // By the position in `ranks`: in the order in which they were issued, of the last epoch.
  std::vector<std::vector<IssuedMessage>> issued;
  std::vector<std::int64_t> members;            // by their ranks in the group; empty: unknown
  std::map<std::int64_t, std::size_t> rank_of;  // a rank of the group: index into IssuedJob::ranks
  std::string Title() const;                    // as of IssuedGroup
};

// A dump that is cut, damaged or refused, and of which no whole copy in the other form is there.
struct CutDump {
  std::string rank;  // "2"; empty: its name has none
  std::string path;
  std::optional<std::int64_t> byte_offset;
  std::string problem;
};

// Collectives that are not among IssuedJob::groups.
struct NotCompared {
  std::int64_t count = 0;
  std::string_view source;  // "profiles"
  std::string reason;       // "they have no sequence number"
};

// The time that passes between two calls of a rank, in whatever group.
struct CallPace {
  std::size_t pauses = 0;  // that the rank with most of them has
  std::int64_t usual_ns =
      0;  // the longest of any rank, without the longest of each: that may be a compile
  std::int64_t span_ns = 0;  // from the first call of a rank to its last
};

struct IssuedJob {
  std::int64_t run_id = 0;
  // "the dumps of 4 ranks": what the groups were made from.
  std::string Sources() const;
  std::vector<NotCompared> not_compared;
  std::vector<IssuingRank> ranks;  // by rank, then by path; then those of which nothing is known
  std::size_t known_ranks = 0;     // that issued something
  std::size_t dump_ranks = 0, profile_ranks = 0, libtrace_ranks = 0;  // of them, by their files
  std::vector<IssuedGroup> groups;                                    // by name
  std::vector<MessageGroup> message_groups;                           // by name
  std::vector<CutDump> cut_dumps;                                     // by rank, then by path
  CallPace pace;
  ProfiledTraffic profiled_traffic;
  // Answered is of these ranks alone, with those that they meet: indices into `ranks`.
  bool is_of_some = false;
  std::vector<std::size_t> only = {};
  bool IsAsked(std::size_t rank) const {
    return !is_of_some || std::find(only.begin(), only.end(), rank) != only.end();
  }
  bool empty() const { return groups.empty() && message_groups.empty(); }
};

// All of a run, or of one launch of it (an ordinal; dumps whose launch is unknown belong to every
// launch). Sends and receives of other files than recorder dumps are left out.
Result<IssuedJob> LoadIssued(Database& database, std::int64_t run_id,
                             const std::optional<std::int64_t>& launch);

// The sends and receives between two ranks of a group, in one direction.
struct MessageLine {
  const MessageGroup* group = nullptr;
  std::int64_t from = 0, to = 0;                  // ranks of the group
  std::size_t sent = 0, received = 0;             // how many the dumps of the two hold
  std::size_t open_sends = 0, open_receives = 0;  // of these: not ended
};
// By group, then by ranks.
std::vector<MessageLine> MessageLines(const IssuedJob& job);

// How far one rank came in the last call of one graph: the schedule of the generated code against
// the issued collectives.
struct GraphProgress {
  std::size_t rank = 0;  // index into IssuedJob::ranks
  std::string label;
  std::string function;
  std::size_t scheduled = 0;  // collectives of the generated code, without waits
  std::size_t issued = 0;     // of all calls that the dump holds
  std::size_t reached = 0;    // of the last call; equal to `scheduled`: all
  std::string next;  // the first that was not reached: "reduce_scatter_tensor group 2, line 159 of
                     // the generated code"
};
// Only graphs with issued collectives; by rank, then by label.
Result<std::vector<GraphProgress>> CompareWithSchedule(Database& database, const IssuedJob& job);

// A problem or a note. The fields are those of `tlparse findings`.
struct CollectiveFinding {
  FindingKind kind = FindingKind::kCollectiveDivergence;  // or kCollectiveNotReached, kStuck
  FindingSeverity severity = FindingSeverity::kError;
  std::string title;
  std::string detail;
  std::vector<std::size_t> ranks;         // the odd ones: indices into IssuedJob::ranks; empty: all
  std::vector<std::size_t> waiting = {};  // those that wait for them; empty: not known
  std::string group;
  std::int64_t sequence = 0;
  bool is_p2p = false;   // the number is one of sends and receives
  std::string label;     // compile of the graph concerned; empty: none
  std::string function;  // compiled function; empty: none
  std::string file;      // Python line; empty: unknown
  std::int64_t line = 0;
  // The odd ranks may wait themselves: their last call is of another group, whose other members'
  // dumps do not hold it.
  bool may_wait_elsewhere = false;
  // A rank of it is in an earlier call of another group, of which another finding may tell.
  bool is_behind_another = false;
  bool is_over = false;               // a wait that ended: all that waited ended with exit code 0
  bool is_of_unknown_length = false;  // how long ranks had waited is not in the dumps
  std::string cause;                  // empty: unknown
  std::string advice;
  std::optional<std::int64_t> since_us;
  std::string query;  // the rows behind it; empty: those of the group's calls of that number
};

// The most urgent first; what follows from an earlier difference in a group is not reported again.
Result<std::vector<CollectiveFinding>> FindIssuedProblems(Database& database, const IssuedJob& job);

// A shorter delay is none, and what a log has in a shorter time is not reported: a database from a fleet
// lacks records.
inline constexpr std::int64_t kShortestTimeUs = 50'000;

// Ranks that issued a collective long after all others, which need them to complete it: ten times as long
// as usual in the group, and a twentieth of the job's time; a fifth of it in a group of few collectives.
// One finding for each set of ranks, the longest delay first; where delays share their time, the first of
// them alone.
struct LateArrival {
  CollectiveFinding finding;
  bool is_first = false;  // nothing is known that the rank issued before
  // Its log has records of compiles in that time; and, where it has their durations, the rank compiled for
  // half of the delay or more beyond what the others did.
  bool has_compiled = false;
};
Result<std::vector<LateArrival>> FindLateArrivals(Database& database, const IssuedJob& job);

// Ranks whose dumps end before a collective that others have, which needs all ranks: whether they
// wait in it may not be known.
struct EarlyDump {
  std::string ranks;  // "rank 1"
  std::size_t rank_count = 0;
  std::string call;       // "all_reduce #2 of group tp (1)"
  std::string holders;    // "rank 0"
  std::string elsewhere;  // a sentence on what the first of the ranks issued last; empty: unknown
};
std::optional<EarlyDump> FindEarlyDump(const IssuedJob& job);

// The last call that any dump has.
struct FinalCall {
  std::string rank;  // "rank 0"
  std::string call;  // "#21 all_reduce [4] Float from train.py:10 of group default_pg (0)"
  std::string file;  // empty: unknown
  std::int64_t line = 0;
};
std::optional<FinalCall> FindFinalCall(const IssuedJob& job);

// All problems, then the late arrivals.
Result<std::vector<CollectiveFinding>> FindAllOfIssued(Database& database, const IssuedJob& job);

}  // namespace tlparse
