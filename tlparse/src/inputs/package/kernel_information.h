// kernel_information.json: the kernels of a model compiled by AOTInductor, with provenance on.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "inputs/common/plain_value.h"
#include "inputs/reader.h"

namespace tlparse {

// Declares the tables that AddKernelInformation fills.
void UseKernelTables(TableSet& tables);

// The object "kernel:handle" → {stack_traces, post_grad_nodes, …} as rows of kernel_row,
// kernel_node_row, kernel_source_row and package_kernel_fact_row under a new content.
struct AddedKernels {
  std::int64_t content_id = 0;
  std::int64_t count = 0;
};
// Members other than kernels are left out. Nothing if there is no kernel.
Result<std::optional<AddedKernels>> AddKernelInformation(const PlainValue& root,
                                                         RuntimeContext& context);

}  // namespace tlparse
