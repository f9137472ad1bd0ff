// Which lines of the user's code a compile traced, as far as its records name them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct TracedLine {
  std::string file;
  std::int64_t line = 0;
  std::string code;  // empty: the log does not have it

  bool IsAt(const TracedLine& other) const { return line == other.line && file == other.file; }
};

struct TracedLines {
  std::vector<TracedLine> lines;  // by file and line, those of the function's file first
  // Which records name them. Without a graph the compile ended before it was made, and the lines are
  // those at which it made symbols.
  bool has_graph = false, has_guards = false;
};

// The lines of the nodes of the Dynamo graph, and those of the guards in the same files; without a
// graph those of symbols. Lines of libraries are left out.
Result<TracedLines> LoadTracedLines(Database& database, std::int64_t compile_id,
                                    std::string_view function_file);

// Equal for compiles whose graphs and guards are: they have the same lines. Empty: it has no graph.
Result<std::string> KeyOfTracedLines(Database& database, std::int64_t compile_id);

// Those of `a` that `b` lacks.
std::vector<TracedLine> LinesWithout(const TracedLines& a, const TracedLines& b);

// "train.py:14-18, util.py:3"
std::string LinesText(const std::vector<TracedLine>& lines);

}  // namespace tlparse
