// A traceback as a row of uncaught_exception, the text of an abort as one of printed_abort.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "inputs/reader.h"
#include "inputs/torch_logs/abort_text.h"

namespace tlparse {

// Where it was found, and of which process it is.
struct ExceptionPlace {
  std::optional<std::int64_t> ordinal = {};  // of its process in run.json
  std::optional<std::int64_t> line = {};     // of a text
  std::optional<std::int64_t> rank = {};
  std::optional<std::int64_t> raised_us = {};
  std::optional<std::string> thread = {};  // or task, that it ended
  bool is_of_task = false;
  std::optional<std::string> process_name = {};  // of a text: as its lines name it
};

// Adds nothing if the text holds no traceback. The reader uses UncaughtExceptionRow.
void AddException(RuntimeContext& context, const ExceptionPlace& place, std::string_view traceback);

// The reader uses PrintedAbortRow. A line of 0: it is of run.json.
void AddAbort(RuntimeContext& context, const AbortText& abort);

}  // namespace tlparse
