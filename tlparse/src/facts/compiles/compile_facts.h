// What `tlparse diff` compares of one participant's compiles, as texts and hashes, which are
// comparable between databases (ids are not).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artifacts/common/cache/key_set.h"
#include "base/result.h"
#include "facts/compiles/cuda_graphs.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

struct FactLookup {
  std::string layer, state, direction, key, bypass_reason, guard, remote_error;
  KeySet set;  // of its own database; set_id 0: unknown
};

struct FactCode {
  std::string title;         // "forward", "backward 2"
  std::string content_hash;  // of the normalised code
  std::int64_t record_id = 0;
};

// A guard, recompile reason or graph break: what is compared, and what is shown.
struct FactText {
  std::string key, text;
  // Of a guard: what it checks, with its line of code (empty: unknown); and the end of `text` that
  // names that line.
  std::string subject = {}, at = {};
};

struct FactBreak {
  std::string place;  // "file:line"; empty: unknown
  std::string cause;
};

struct CompileFacts {
  std::int64_t id = 0;
  std::string label, function, file;
  std::string key;  // by which it is matched with those of another run
  CompileStatus status = CompileStatus::kOk;
  std::string graph_hash;  // normalised Dynamo graph; empty: none
  std::int64_t graph_content = 0;
  std::map<std::string, std::int64_t> phases_us;  // LoadPhases
  std::vector<FactText> recompile_reasons;
  std::vector<FactBreak> graph_breaks;
  std::vector<FactText> guards;      // checks, without the managers of the tree; sorted by key
  std::vector<std::string> kernels;  // names, sorted, with repetitions
  std::vector<FactLookup> lookups;
  std::vector<FactCode> codes;
  CudaGraphSummary cuda_graphs;
  std::int64_t functorch_config_payload = 0;
};

struct ParticipantFacts {
  std::string title;  // "run X", "run X, rank 5"
  std::string torch_version, python_version;
  std::vector<CompileFacts> compiles;
};

// The whole of a compile, and the phases that its metrics measure.
inline constexpr const char* kCompilePhases[] = {"total",    "dynamo", "aot_autograd", "inductor",
                                                 "code_gen", "triton", "backward"};
// Microseconds by phase; what the log lacks is missing.
using Phases = std::map<std::string, std::int64_t>;
Result<Phases> LoadPhases(Database& database, const JobCompile& compile);

Result<ParticipantFacts> LoadParticipantFacts(Database& database, const Job& job,
                                              RankIndex participant);

}  // namespace tlparse
