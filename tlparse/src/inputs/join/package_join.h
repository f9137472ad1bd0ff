// Joins kernels of profiles with the kernels of AOTInductor models, which run without a log.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// The kernels of an AOTInductor model are those of its package, or of the log of the process that
// compiled it. In each thread of a profile, the sequence of CPU kernels outside graph calls, and of
// ops that a model calls instead of kernels (aoti_torch_cpu_addmm_out), is searched for all kernels
// of one model, by name and in order: that is one run of the model (a slice of kind 7), and each
// kernel is joined (K5). The longest of several matching models counts.
// Call after the joins of the profiles.
Result<void> JoinPackages(Database& database, std::int64_t run_id);

}  // namespace tlparse
