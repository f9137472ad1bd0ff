// Joins kernels of profiles with the kernels of AOTInductor models, which run without a log.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// The kernels of an AOTInductor model are those of its package, or of the log of the process that
// compiled it. For the profiles of a run: kernels on the CPU that no graph call accounts for, and the
// ops that a model calls instead of kernels (aoti_torch_cpu_addmm_out), are followed through each
// thread; where they are all kernels of one model, by name and in order, they are one run of it (a
// slice of kind 7) and each is joined (K5). Of models that begin alike the longest that fits counts.
// Call after the joins of the profiles.
Result<void> JoinPackages(Database& database, std::int64_t run_id);

}  // namespace tlparse
