// One compile on one rank, whole: the answer of `tlparse compile`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "answers/compile/traced_lines.h"
#include "artifacts/common/compile_status.h"
#include "base/result.h"
#include "facts/compiles/compile_facts.h"
#include "facts/compiles/cuda_graphs.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/contents/compile_inputs.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

struct CompileOptions {
  std::string label;                   // "1/0", "1/0#2" of its second use after a reset
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
  // Nothing: of all that have the compile the first that did not finish it, else the first.
  AskedParticipant asked;
};

// A place and what is said of it; line 0: unknown.
struct CompilePlace {
  std::string file, function, code;
  std::int64_t line = 0;
};

// What is the same for some of the other ranks of the role that have this compile.
struct OfOtherRanks {
  std::string ranks;  // "ranks 0,1"
  std::string text;
};

struct LinesOfOtherRanks {
  std::string ranks;
  TracedLines traced;
  std::vector<TracedLine> only_here, only_there;
};

struct CompileLookup {
  std::string layer, state, direction, key, bypass_reason, guard, remote_error;
};

struct CompileException {
  bool is_restart = false;
  std::string type, message;  // whole
  CompilePlace place;
};

struct CompileAnswer {
  std::string run;
  std::int64_t launch = 1, launch_count = 1;
  std::int64_t id = 0;  // compile.id
  std::string label;
  std::optional<std::int64_t> rank;
  std::string who;  // "rank 2", "log worker_1", "process 42"
  std::int64_t process_id = 0, pid = 0;
  std::string log;
  std::int64_t log_line = 0;  // of its first record; 0: unknown
  CompilePlace function;
  CompileStatus status = CompileStatus::kOk;
  bool ends_in_backward = false;  // the log ends inside the compile of its backward
  std::optional<std::int64_t> start_us;
  std::string role;  // that the others are of; empty: ranks have one role, or none is known
  std::vector<OfOtherRanks> statuses;  // of the others: "ok"
  std::string without;                 // others that do not have the compile: "rank 3"

  // Frames of the user's above it, innermost first. PyTorch 2.14 leaves out the two next to it.
  std::vector<CompilePlace> callers;
  TracedLines traced;
  std::vector<LinesOfOtherRanks> other_lines;
  bool has_equal_lines = false;  // all others traced the same lines
  std::vector<InputTensor> inputs;
  std::vector<OfOtherRanks> input_changes;  // from them to this one: "x: size [8] → [12]"
  bool has_equal_inputs = false;            // all others describe as many, alike
  std::vector<FailedEntry> failed_guards;
  Phases phases;
  std::optional<double> least_other_s, most_other_s;  // whole time of the others that finished it
  std::vector<CompileLookup> lookups;
  std::vector<OfOtherRanks> cache_causes;      // why lookups ended otherwise than theirs
  std::vector<std::string> missed_because;     // what differs from the closest earlier key
  std::map<std::string, std::string> options;  // of its metrics; empty: not in the log
  bool has_equal_options = false;              // all others have the same
  std::vector<OfOtherRanks> option_changes;    // from them to this one
  std::string options_unknown_of;              // others whose metrics do not have them
  std::string torch_version, python_version;
  std::vector<CompileException> exceptions;
  std::vector<CompilePlace> graph_breaks;  // `code`: the cause
  CudaGraphs cuda_graphs;
  // What the process began next; label empty: nothing.
  std::string next_label, next_function, next_status;
  std::optional<std::int64_t> next_start_us, last_record_us;
};

// kNotFound: no such run, launch, rank or compile; the message names those that there are.
Result<CompileAnswer> AnalyzeCompile(Database& database, const CompileOptions& options);

}  // namespace tlparse
