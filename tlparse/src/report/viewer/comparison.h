// The chunks diff/<pair>: what differs between two sides, as `tlparse diff` says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// `pair`: ranks, launches or runs, the comparisons that a page of files has: of a rank of each class
// of equal ranks of the latest launch, of each launch with the one before, with the run before;
// none, if the database has more than 100,000 collectives. Or two sides, as "p3-p7", "l1-l2",
// "u1-u2": processes, launches of the run, runs by id. kNotFound: it is none of these, or there is
// no such side.
Result<std::string> DiffChunk(Database& database, std::int64_t run_id, std::string_view pair);

}  // namespace tlparse
