// The compiler's estimate of each kernel's run time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// By (graph id, kernel id): nanoseconds of one run of the kernel.
//
// The log has an estimate for each node of Inductor's scheduler; the code calls kernels, and neither names the other. Nodes and
// kernels of a graph are therefore matched by position, if there are as many of both. Nodes without a name are ignored. For example,
// where the code calls the three kernels cpp_fused_0, extern_kernels.mm, cpp_fused_1:
//
//   nodes with estimates       kernels get
//   op0, mm, op2               op0; mm; op2
//   op0, op1_op2, mm, op3      op0 + op1_op2; mm; op3: the CPU backend makes one kernel of neighbouring nodes
//   op0, mm                    nothing: no estimate for this graph
//
// With `profile_id`: only graphs of the process that this profile measured.
Result<std::map<std::pair<std::int64_t, std::int64_t>, double>> KernelEstimates(
    Database& database, std::int64_t run_id, std::optional<std::int64_t> profile_id);

}  // namespace tlparse
