// What the compiler tuned: the choices of each kernel that it timed, which one won, and how long that
// took. The answer of `tlparse autotune`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"

namespace tlparse {

// What a rank chose for a kernel, as far as the log has it: the times of the best choice, and of the
// best one of Triton.
struct TunedChoice {
  RankIndex rank = 0;
  std::optional<std::int64_t> choices, triton_choices;  // that were timed
  std::string best, best_description;                   // empty: the log does not say
  std::optional<double> best_ms;
  std::optional<std::int64_t> triton_place;  // of the best choice of Triton: 1 is the best of all
  std::string triton, triton_description;
  std::optional<double> triton_ms;
  double precompile_s = 0, benchmark_s = 0;
  std::int64_t record_id = 0;
  std::optional<std::int64_t> precompile_record_id;

  // The same on all ranks where they chose the same: names end in a number that a process counts up.
  std::string Key() const;
};

// A kernel in one compile of the job. One that a compile tunes twice is two.
struct TunedKernel {
  std::int32_t slot = -1;  // -1: the log does not name the compile
  bool is_at_run_time =
      false;  // configurations that were run when a kernel of Triton was first called
  std::string kernel;
  std::string shapes, strides, dtypes;  // of the inputs, as PyTorch writes them
  std::vector<TunedChoice> on_ranks;
};

// A choice that could not be compiled.
struct FailedChoice {
  std::int32_t slot = -1;
  std::string kernel, choice, exception, message;
  bool is_out_of_memory = false;  // it needs more registers or shared memory than the device has
  std::vector<RankIndex> ranks;
  std::vector<std::int64_t> record_ids;
};

struct Autotuned {
  std::vector<TunedKernel> kernels;  // by compile
  std::vector<FailedChoice> failed;

  // Of a rank, without what was tuned at run time.
  double TuningSeconds(RankIndex rank) const;
};
Result<Autotuned> LoadAutotuned(Database& database, const Job& job);

// Of the rank's compiles with their backwards; nothing: the log lacks the time of one.
std::optional<double> CompileSeconds(const Job& job, RankIndex rank);

struct AutotuneAnswer : Autotuned {
  Job job;
  std::string only = {};                // of one rank or process: what was left out
  std::vector<RankIndex> members = {};  // then: of whom
  // "0/0 forward"; empty: unknown.
  std::string Title(std::int32_t slot) const;
};

struct AutotuneOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
};

Result<AutotuneAnswer> AnalyzeAutotune(Database& database, const AutotuneOptions& options);

}  // namespace tlparse
