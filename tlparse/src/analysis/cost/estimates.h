// The compiler's estimate of each kernel's run time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Nanoseconds of one run, by (graph, kernel). The log estimates scheduler nodes, the code calls
// kernels: nodes without a name are dropped, and the i-th node is the i-th kernel if their numbers
// are equal; else stretches of fused nodes (op3, op4_op5, …) between extern kernels count as one
// kernel (CPU). Graphs where neither gives as many as the code has kernels have no estimate. With
// `profile_id` only graphs of the process that this profile measured.
Result<std::map<std::pair<std::int64_t, std::int64_t>, double>> KernelEstimates(
    Database& database, std::int64_t run_id, std::optional<std::int64_t> profile_id);

}  // namespace tlparse
