// The rank that the others wait for in receives and collectives, by profiles of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct ProfiledWait {
  std::int64_t rank = 0;
  std::vector<std::int64_t> waiting = {};  // the other ranks, ascending
  // Times in which all others were inside such calls: the longest, which make nine tenths of them.
  std::size_t count = 0;
  std::set<std::string> kinds = {};  // of these calls: collectives, receives, sends
  std::int64_t median_ns = 0;        // of these times
  std::int64_t lost_ns = 0;          // their sum
  std::int64_t span_ns = 0;          // what the profiles of all ranks cover
  std::int64_t compiled_ns = 0;      // of that, when some rank compiled
  std::int64_t since_ns = 0;         // the first of these times
  // The program's own name (record_function) for what the rank did meanwhile, and for how long.
  std::string activity = {};
  std::int64_t activity_ns = 0;
};

// A rank of `ranks` that was outside any send, receive or collective while all others were inside one, at
// least twice, for a tenth or more of the time in which no rank compiled, the longest time left out,
// and three times as long as any other rank. Each stage of a pipeline works while the others wait, so
// one part of its program has to take half of these times and to run elsewhere for less than half of
// that: its loader, for example. Read are slices of calls that last until the others come to theirs
// (those of Gloo). Nothing: there is no such rank; a rank has no profile; or the profiles are of several
// hosts, whose clocks may differ.
Result<std::optional<ProfiledWait>> FindProfiledWait(Database& database, std::int64_t run_id,
                                                     const std::set<std::int64_t>& ranks);

}  // namespace tlparse
