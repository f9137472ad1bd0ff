// The roles of a job's ranks, from the database. See roles.h.
#pragma once

#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "facts/job/log_damage.h"
#include "facts/job/roles.h"
#include "queries/facts/job/role_members.h"
#include "store/database.h"

namespace tlparse {

// Of the ranks of the job's first logs; a rank of another job, and a log without rank, has no role.
// Empty: no participant has a rank. Ranks that compiled the same have one role, whatever they send.
// They are loaded once for a job, and live as long as it.
Result<const std::vector<Role>*> LoadRoles(Database& database, const Job& job,
                                           const LogDamage& damage);

// The rows of the lists of collectives of the job and all its parts, in the order of their records.
Result<const std::vector<CollectivesOfGraph>*> LoadCollectives(Database& database, const Job& job);

}  // namespace tlparse
