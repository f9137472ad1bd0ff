// What libtrace measured, and the joins of what is no profile: recorder dumps, packages, tritonparse logs and TORCH_LOGS; then,
// with all kernels joined, how their time is divided among lines.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Makes them anew from what the database holds. To be called once all inputs of a load are in,
// after JoinRun; does nothing for a run without such inputs.
Result<void> JoinInputs(Database& database, std::int64_t run_id);

}  // namespace tlparse
