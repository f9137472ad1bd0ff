// What the lines of one text tell of failures, as rows of uncaught_exception, launcher_failure, printed_abort and nccl_warning.
#pragma once

#include <cstdint>
#include <string_view>

#include "inputs/reader.h"
#include "inputs/torch_logs/abort_text.h"
#include "inputs/torch_logs/collected_line.h"
#include "inputs/torch_logs/nccl_debug.h"
#include "inputs/torch_logs/tracebacks.h"

namespace tlparse {

struct FailureTexts {
  FailureText failures;
  ProcessTracebacks tracebacks;
  AbortTexts aborts;
  NcclDebugText nccl;

  // A line that is none of a log. Whether it is one of these; `tracebacks` takes all lines apart.
  bool Add(std::string_view line, std::int64_t number);
};

// After the last line. The reader uses the rows' tables.
void AddFailureRows(RuntimeContext& context, const FailureTexts& texts);

}  // namespace tlparse
