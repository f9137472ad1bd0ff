// The rank that the others wait for again and again, by the times at which ranks came to collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/collectives/issued.h"
#include "store/database.h"

namespace tlparse {

// Another rank that others wait for, in another group.
struct AlsoAwaited {
  std::size_t rank = 0;
  const IssuedGroup* group = nullptr;
  std::int64_t lost_ns = 0;
};

struct Straggler {
  std::size_t rank = 0;                   // index into IssuedJob::ranks
  std::vector<std::size_t> ranks = {};    // it, or several that are slow alike, ascending
  std::vector<std::size_t> waiting = {};  // the others of the group, ascending
  const IssuedGroup* group = nullptr;
  const IssuedCollective* call = nullptr;  // of the rank, with the median of the long delays
  std::size_t last_count = 0;              // collectives to which it came last
  std::size_t count = 0;                   // that all of them issued
  std::size_t unawaited_count = 0;         // besides, in which no rank waited for another
  bool has_barriers = false;               // besides, which are not counted
  bool is_of_barriers = false;             // they alone are counted
  std::int64_t lost_ns =
      0;  // from the last of the others to it, where it came last; what calls share once
  bool has_shared = false;  // calls share some: they do not wait for each other
  // The delays that make nine tenths of that; all of them, if they are alike: their median is not far
  // from their mean, nor from the upper three quarters of them.
  std::size_t long_count = 0;
  std::int64_t median_ns = 0, least_ns = 0, long_ns = 0;  // of these; long_ns is their sum
  std::int64_t compiled_ns = 0;      // that it compiled meanwhile, which is not counted
  std::int64_t span_ns = 0;          // from the first of the `count` collectives to the last
  std::int64_t job_compiled_ns = 0;  // of that, when some rank compiled
  // It issued these calls in time, by its CPU: its device came late to them.
  bool is_of_device = false;
  bool is_at_least = false;    // the delays may be longer: the clocks are not known to agree
  bool may_be_spread = false;  // few delays, no longer than what the times of the others differ by
  // The program's own name (record_function) for what the rank did in most of the lost time; empty: a
  // profile of it has none.
  std::string activity = {};
  std::int64_t activity_ns = 0;
  std::int64_t profiled_ns = 0;             // of the lost time, what its profile covers
  const IssuedGroup* without_it = nullptr;  // one of all that wait: it has another part in the job
  std::vector<AlsoAwaited> also = {};       // for half as long or longer, the longest first
};

// The rank for which the others wait. All of this holds:
//   * The others waited for it for a tenth of the time or more; or, in delays of one length, for a
//     fiftieth that is a fifth of the time in which no rank compiled, its start before the first compile apart.
//   * These delays are at least three; two, if its profile says what it did, or if both are alike and
//     together half of the time in which no rank compiled.
//   * Without its longest delay that is a fiftieth of the time of all groups, and three times as long
//     as for any other rank.
// A delay is the time after the last of the others. Several ranks that are slow alike, half of their group
// at most, count as one that came when the first of them did. Nothing: there is none; or the times of the rank
// are of another clock, since others had ended collectives before it came to them. Where it came last
// to every collective of every group and no end shows that the clocks agree, only what is beyond its
// shortest delay counts.
// Of barriers alone, or of all other collectives: barriers are there to wait in.
Result<std::optional<Straggler>> FindStraggler(Database& database, const IssuedJob& job,
                                               bool is_of_barriers);

}  // namespace tlparse
