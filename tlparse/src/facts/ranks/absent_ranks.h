// Which ranks have no log, more than one, or no compile. Internal to facts/ranks.
#pragma once

#include "facts/ranks/ranks.h"

namespace tlparse {

// Sets missing ranks, further logs of a rank, participants without a compile, and how many ranks
// the job has: as given, else the least number that the logs, recorder dumps and profiles show.
// Of a part of the job nothing is set.
Result<void> FindAbsent(Database& database, const RanksOptions& options, RanksAnswer& answer);

}  // namespace tlparse
