// What changed between two runs, or two ranks. The answer of `tlparse diff`. Side a is the earlier
// or the one compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/cache/cause.h"
#include "facts/compiles/compile_facts.h"
#include "facts/diff/measured_difference.h"

namespace tlparse {

struct PhaseChange {
  std::string phase;  // one of kCompilePhases (compile_facts.h)
  std::optional<std::int64_t> a_us, b_us;
};

struct CacheChange {
  std::string title;             // "fx_graph forward"
  std::string a_state, b_state;  // empty: no such lookup
  bool has_same_key = false;
  std::vector<Cause> causes;  // why the keys differ
  std::string fallback;       // what was compared where components are missing
};

struct CodeChange {
  std::string title;  // "forward"
  std::string diff;   // unified, of the normalised codes; only if asked for
  std::int64_t a_record_id = 0, b_record_id = 0;
};

// A compile of both sides, matched by function and graph, else by function and label, else by
// function.
struct CompileChange {
  std::int64_t a_id = 0, b_id = 0;  // of the databases of their sides
  std::string a_label, b_label, function;
  std::string a_file, b_file;  // of the function; empty: unknown
  bool HasOtherFile() const;   // by name: the same file may be in another directory
  CompileStatus a_status = CompileStatus::kOk, b_status = CompileStatus::kOk;
  bool has_same_graph = true;
  // First differing node; empty: the operations are equal, the texts not.
  std::string graph_difference;
  bool has_other_comments_only = false;  // in the graphs
  bool IsFinished() const;               // on both sides
  std::vector<PhaseChange> phases;
  std::vector<std::string> new_recompiles, vanished_recompiles;
  std::vector<std::string> new_graph_breaks, vanished_graph_breaks;
  std::vector<std::string> changed_graph_breaks;  // in the same place, with another cause
  // What one side has none of (its compile ended before it was logged) is counted, not listed.
  std::int64_t a_guard_count = 0, b_guard_count = 0, a_kernel_count = 0, b_kernel_count = 0;
  std::vector<std::string> new_guards, vanished_guards;
  std::vector<std::string> changed_guards;  // of the same value in the same line of code
  std::int64_t alike_guard_count = 0;       // that differ, but not as they are shown: in what only
                                            // generated code names
  std::vector<std::string> new_kernels, vanished_kernels;
  std::vector<CacheChange> caches;  // lookups whose state or key differs
  std::vector<CodeChange> codes;    // graphs whose code differs
  CudaGraphSummary a_cuda_graphs, b_cuda_graphs;
  bool IsEqual() const;  // in everything but times
};

struct UnmatchedCompile {
  std::int64_t id = 0;
  std::string label, function;
  CompileStatus status = CompileStatus::kOk;
  std::vector<std::string> recompile_reasons;
  std::int64_t duration_us = 0;  // with its backward; 0: unknown
};

struct DiffAnswer {
  std::string a_title, b_title;
  bool a_has_log = true, b_has_log = true;  // false: only profiles are compared
  std::string a_rank, b_rank;               // "3"; of a run with one log its name
  std::string a_torch_version, b_torch_version, a_python_version, b_python_version;
  // Sums over the compiles that both sides finished, if both logs have their times.
  std::vector<PhaseChange> phases;
  std::int64_t timed_count = 0;  // of those compiles
  std::vector<CompileChange> compiles;
  std::vector<UnmatchedCompile> only_a, only_b;
  std::optional<MeasuredDifference> measured;  // nothing: not both sides have a profile
  bool HasLogs() const { return a_has_log && b_has_log; }
  bool IsEqual() const;  // in everything but times; not without logs
  bool HasOtherTorch() const { return a_torch_version != b_torch_version; }
};

struct DiffSide {
  Database* database = nullptr;
  std::string run;                      // empty: the latest
  std::optional<std::string> rank;      // empty: the lowest
  std::optional<std::int64_t> launch;   // ordinal; nothing: the latest
  std::shared_ptr<const Job> job = {};  // of the run and launch, where it is loaded
};
// That of the side, else loaded.
Result<std::shared_ptr<const Job>> JobOf(const DiffSide& side);
struct DiffOptions {
  bool with_code = false;  // unified diffs of generated codes
};
// kNotFound: no such run or rank. The sides may be of one database.
Result<DiffAnswer> AnalyzeDiff(const DiffSide& a, const DiffSide& b, const DiffOptions& options);

}  // namespace tlparse
