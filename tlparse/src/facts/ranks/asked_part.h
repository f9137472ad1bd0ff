// Of answers that compare the ranks of a job the part that involves one of them: what it is compared
// with stays, the rest is left out, and counted.
#pragma once

#include <string>

#include "base/result.h"
#include "facts/compiles/autotune.h"
#include "facts/job/asked_participant.h"
#include "facts/ranks/ranks.h"

namespace tlparse {

// Each returns what the answer is of then: "only what involves rank 2, compared with ranks 0,1; left
// out: 1 other participant that differs (rank 3)". Empty: no rank or process was asked for.
std::string KeepAsked(const AskedParticipant& asked, RanksAnswer& answer);
std::string KeepAsked(const AskedParticipant& asked, AutotuneAnswer& answer);
Result<std::string> KeepAsked(Database& database, const AskedParticipant& asked,
                              CollectiveAnswer& answer);
Result<std::string> KeepAsked(Database& database, const AskedParticipant& asked,
                              ExecutionAnswer& answer);
// With its closest earlier keys; sums are of its lookups alone.
Result<std::string> KeepAsked(Database& database, const AskedParticipant& asked,
                              CacheAnswer& answer);

}  // namespace tlparse
