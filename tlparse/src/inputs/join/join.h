// Joins measured calls and kernels with what was compiled.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Rebuilds all `_link_row` rows of a run's profiles from the database: which process each profile
// measured, which compile and graph each call belongs to, which kernel of the generated code each
// kernel was (keys K1 … K7; see schemas/sql/inputs/profile.sql). Call after all inputs of a load
// were read; does nothing for a run without profiles. Memory: about 75 bytes for each op,
// CPU kernel and launch of the largest profile, and 50 more where it has device kernels.
Result<void> JoinRun(Database& database, std::int64_t run_id);

}  // namespace tlparse
