// The rank that the others wait for in receives and collectives, by profiles of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/collectives/rank_work.h"
#include "store/database.h"

namespace tlparse {

struct ProfiledWait {
  std::int64_t rank = 0;
  std::vector<std::int64_t> ranks = {};    // it, or several that are slow alike, ascending
  std::vector<std::int64_t> waiting = {};  // the other ranks, ascending
  // Of these: who sends to `rank`, and who receives from it, by the peers in their profiles.
  std::vector<std::int64_t> sending = {}, receiving = {};
  std::string group =
      {};  // "group mesh_tp (4)", where only its ranks wait; empty: all other ranks do
  bool is_of_devices = false;  // by kernels, not by what its CPU did
  // Times in which all others were inside such calls: the longest, which make nine tenths of them.
  std::size_t count = 0;
  std::set<std::string> kinds = {};  // of these calls: collectives, receives, sends
  std::int64_t median_ns = 0;        // of these times
  std::int64_t lost_ns = 0;          // their sum
  std::int64_t span_ns = 0;          // what the profiles of all ranks cover
  std::int64_t compiled_ns = 0;      // of that, when some rank compiled
  std::int64_t since_ns = 0;         // the first of these times
  std::size_t steps = 0;             // that the rank's profile marks in that time
  // The program's own name (record_function) for what the rank did meanwhile, and for how long.
  std::string activity = {};
  std::int64_t activity_ns = 0;
  MostWork work = {};          // in these times
  FunctionTime function = {};  // that took half of them or more
  bool IsIdle() const { return 2 * work.idle_ns >= lost_ns; }
  // By how much longer than any other rank no op of it worked while it did not wait, where that is most of
  // the lost time, and the op of `work` is no longer than that of others; 0: it is not so.
  std::int64_t idle_more_ns = 0;
  // It is the stage of a pipeline that computes for longest: that may be as it has to be.
  bool is_long_stage = false;
  // It runs backwards and no other rank does (true), or the others do and it does not (false).
  std::optional<bool> trains_alone = {};
};

// A rank of `ranks` that waited in no send, receive or collective while all others were inside one, and
// no op worked on theirs: for a tenth or more of the time in which no rank compiled, the longest time
// left out, and three times as long as any other rank. And it stands out: in three quarters of all parts
// of the time it was awaited longest (of two ranks: seven eighths), or StandOut. Several ranks that are slow
// alike, half of all at most, count as one that is outside where one of them is. All others have calls with it, or
// with a rank that has (RankMeetings, of 256 ranks at most): who exchanges data among themselves waits for no other.
// Each stage of a pipeline works while the others wait: there only times in which no op worked count, or
// which one part of its program has to take half of and to run elsewhere for less than half of that (its
// loader, for example); what else is one makes a long stage. Read are slices of calls that last until
// the others come to theirs (those of Gloo), and where there are any the kernels of NCCL and of devices. Where
// no rank is awaited by all, the same of the ranks of each group that the profiles name, by the collectives
// that end on all of them at once, for half of the time. Nothing: there is no such rank; a rank has no profile, or
// none of ops; or the profiles are of several hosts, whose clocks may differ.
Result<std::optional<ProfiledWait>> FindProfiledWait(Database& database, std::int64_t run_id,
                                                     const std::set<std::int64_t>& ranks);

}  // namespace tlparse
