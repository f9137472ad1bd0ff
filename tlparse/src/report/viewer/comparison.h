// The chunks diff/<pair>: what differs between two sides, as `tlparse diff` says it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/viewer/comparison_sides.h"

namespace tlparse {

// `pair`: ranks, launches or runs, the comparisons that a page of files has: of a rank of each class
// of equal ranks of the latest launch, of each launch with the one before, with the run before;
// none, if the database has more than 100,000 collectives. databases: the run with the latest of
// each other database. Or two sides, as "p3-p7", "l1-l2", "u1-u2", "u1-2:u3": processes, launches of
// the run, runs by id, a run of the second database. kNotFound: it is none of these, or there is no
// such side.
Result<std::string> DiffChunk(const ComparedRun& run, std::string_view pair);

}  // namespace tlparse
