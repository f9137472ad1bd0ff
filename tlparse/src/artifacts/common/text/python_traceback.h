// Python traceback text (traceback.format_exc and friends): which exception it ends with and where
// in the user's code it arose.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

// `File "a.py", line 3, in f`; views into the text it was read from.
struct PythonFrame {
  std::string_view file;
  std::int64_t line = 0;
  std::string_view function;  // "" if not in the line
};

// Reads one line of a stack; nothing if it is another line. Leading white space is skipped.
std::optional<PythonFrame> ParseFrameLine(std::string_view line);

// The innermost (last) frame of a stack; with `user_only` the last one whose file is the user's.
std::optional<PythonFrame> LastFrame(std::string_view text, bool user_only = false);

// Whether the file is neither part of PyTorch nor of Python's library nor of an installed package,
// nor generated.
bool IsUserFile(std::string_view file);

// Whether the file is part of PyTorch.
bool IsTorchFile(std::string_view file);

struct TracebackSummary {
  std::string_view type;  // exception class without its module; "" if the text holds no traceback
  std::string_view message;  // all lines of it, without white space at the end
  // The innermost frame whose file is the user's: below "from user code:" (Dynamo appends it to the
  // message), else of the traceback, else of what the message quotes. Where nothing below "from
  // user code:" is the user's, its innermost frame.
  std::optional<PythonFrame> user_frame;
};

// The exception that `text` ends with: of chained tracebacks the last. Linear in the length of the
// text.
TracebackSummary SummarizeTraceback(std::string_view text);

// The exception from which that one was raised ("raise … from …"), of several the first. No type: there
// is none.
TracebackSummary CauseOfTraceback(std::string_view text);

// The first traceback that a message quotes, of another process: below "-- Process 0 terminated with the
// following error:" of multiprocessing, or of a rank in a CheckpointException. No type: there is none.
TracebackSummary QuotedTraceback(std::string_view message);

// Helpers for texts of lines. NextLine takes the first line off `text` (without its LF).
std::string_view NextLine(std::string_view& text);
std::string_view TrimEnd(std::string_view text);

}  // namespace tlparse
