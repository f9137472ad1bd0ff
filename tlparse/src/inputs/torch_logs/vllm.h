// Lines that vLLM prints while it starts: vllm/logging_utils/formatter.py of 0.8 to 0.32.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "enums/vllm.h"

namespace tlparse {

// A member that the line does not have is empty or nothing.
struct VllmLine {
  std::string_view process_name;
  std::optional<std::int64_t> pid;
  std::string_view local_time;
  std::optional<VllmStage> stage;  // nothing: a line of anything else
  std::optional<double> seconds;
  std::string_view text;
};

// "(Worker pid=5691) INFO 11-29 13:36:06 [base_loader.py:82] Initializing model took 0.188587 seconds".
// Nothing: it is of another form.
std::optional<VllmLine> ParseVllmLine(std::string_view text);

}  // namespace tlparse
