// Joins inputs other than profiles: libtrace's measurements, recorder dumps, packages, tritonparse
// logs and TORCH_LOGS. Then divides the time of all joined kernels among lines.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Rebuilds them from the database. Call after JoinRun, when all inputs of a load were read; does
// nothing for a run without such inputs.
Result<void> JoinInputs(Database& database, std::int64_t run_id);

}  // namespace tlparse
