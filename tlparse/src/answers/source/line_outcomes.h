// What came of a line of Python: functions that begin there, graph breaks, recompiles, failures,
// guards, graph nodes and kernels, as far as records name the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

enum class LineOutcomeKind {
  kFunction,  // a compiled function begins here
  kGraphBreak,
  kRecompile,  // by a guard that comes from here
  kFailure,
  kGuard,
  kNode,    // of a graph
  kKernel,  // with this line innermost in a stack of one of its nodes
};
std::string_view Name(LineOutcomeKind kind);

// Equal ones of several ranks are one.
struct LineOutcome {
  LineOutcomeKind kind = LineOutcomeKind::kFunction;
  std::string file;         // whole, where the inputs have one path that ends so
  std::string logged_file;  // as the log spells it; may be cut at the left
  std::int64_t line = 0;
  std::string label, function, direction;  // direction: of a kernel's graph
  // The compile's status, the cause of a break, the guard, the exception's type, "<stage>: <first
  // node>", the kernel.
  std::string text;
  std::int64_t count = 1;  // guards or nodes of the line in one compile
  std::vector<std::int64_t> ranks;
  std::int64_t compile_id = 0;  // of the first
  std::optional<std::int64_t> record_id;
};

struct PlaceInSource {
  std::string file;                  // a path or its end
  std::optional<std::int64_t> line;  // nothing: all lines of the file
};
// "train.py:48", "train.py".
PlaceInSource ParsePlace(const std::string& text);

// In the order of files, lines, kinds and compiles.
Result<std::vector<LineOutcome>> LoadLineOutcomes(Database& database, std::int64_t run_id,
                                                  const PlaceInSource& place,
                                                  const AskedParticipant& asked);

// Empty: no record has the text of the line of a file that it spells so.
Result<std::string> LoadCodeOfLine(Database& database, const std::string& logged_file,
                                   std::int64_t line);

}  // namespace tlparse
