// Lines that vLLM prints while it starts and when it fails: vllm/logging_utils/formatter.py of 0.8 to 0.32.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "enums/vllm.h"

namespace tlparse {

// A member that the line does not have is empty or nothing.
struct VllmLine {
  std::string_view process_name;
  std::optional<std::int64_t> pid;
  std::string_view local_time;
  bool is_error = false;
  std::string_view place;          // "core.py:1108"
  std::optional<VllmStage> stage;  // nothing: a line of anything else
  std::optional<double> seconds;
  std::string_view text;
  std::string_view text_as_written;  // with its spaces
};

// "(Worker pid=5691) INFO 11-29 13:36:06 [base_loader.py:82] Initializing model took 0.188587 seconds".
// Nothing: it is of another form.
std::optional<VllmLine> ParseVllmLine(std::string_view text);

// A traceback that a process logged when it said that it had failed (VllmStage::kFailed).
struct VllmTraceback {
  std::int64_t line = 0;  // that says so
  std::string place;      // each line of the traceback has the same in front
  std::string text;       // cut
};

// The tracebacks of one file, whose processes may write by turns.
class VllmTracebacks {
 public:
  // The lines in order. Whether the line is part of a traceback.
  bool Add(const VllmLine& line, std::int64_t number);

  std::vector<VllmTraceback> tracebacks;  // in order of their first lines

 private:
  // Index in `tracebacks` of the one that the next line of the process may continue.
  std::map<std::int64_t, std::size_t> of_pid_;
};

}  // namespace tlparse
