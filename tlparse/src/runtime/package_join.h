// Joins kernels of profiles with the kernels of AOTInductor packages, which run without a log.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// For the profiles of a run: kernels on the CPU that no graph of a log accounts for, and the ops that
// a package calls instead of kernels (aoti_torch_cpu_addmm_out), are followed through each thread;
// where they are all kernels of one model of a package, by name and in order, each is joined (K5).
// Of models that begin alike the longest that fits counts. Call after the joins of the profiles.
Result<void> JoinPackages(Database& database, std::int64_t run_id);

}  // namespace tlparse
