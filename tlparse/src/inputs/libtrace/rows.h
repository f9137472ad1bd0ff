// Copies libtrace's measurements of a process to the tables of profiles: C++ programs get the same
// answers without a profiler.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Rebuilds, for each process of the run whose log has graph runs or activities of GPUs, a profile
// of kind 'libtrace': its graph runs as calls, its kernels and copies on devices. Sums of ops
// (measured_op) are not single runs and are not copied. Call after JoinRun.
Result<void> AddLibtraceRows(Database& database, std::int64_t run_id);

}  // namespace tlparse
