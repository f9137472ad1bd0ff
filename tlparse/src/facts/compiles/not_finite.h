// Calls of compiled graphs whose outputs hold NaN, by the records of libtrace_run_digest that
// `tlparse run --numbers` makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"

namespace tlparse {

// An output or input of one call.
struct NotFiniteTensor {
  std::int64_t position = 0;
  std::string type;  // "float32[2, 3]"
  std::int64_t nan_count = 0, inf_count = 0;
};

// The calls of one graph in one process of which one at least gave NaN.
struct NanGraph {
  const JobCompile* compile = nullptr;  // of the job; never nullptr
  std::string graph;                    // forward, backward, inference; "forward 2": of several
  std::int64_t record_id = 0;           // of the first call that gave NaN
  std::optional<std::int64_t> time_us, call;
  std::int64_t nan_calls = 0, later_calls = 0;  // of those looked at from that one on
  std::int64_t finite_before = 0;               // those looked at before it
  bool is_nan_at_end = false;                   // the last call looked at gave NaN
};

// In the order of their first NaN: by time, else by the logs.
Result<std::vector<NanGraph>> FindNanGraphs(Database& database, const Job& job);

struct NanCall {
  std::vector<NotFiniteTensor> outputs;  // those with NaN
  std::vector<NotFiniteTensor> inputs;   // those that held NaN or infinity before the call
  // The Python line of the first operation whose result is one of `outputs`; empty: not in the log.
  std::string file, code;
  std::int64_t line = 0;
};
Result<NanCall> LoadNanCall(Database& database, const NanGraph& graph);

}  // namespace tlparse
