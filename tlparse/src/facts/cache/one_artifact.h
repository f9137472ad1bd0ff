// Whether what one rank saves (torch.compiler.save_cache_artifacts) would serve the others: by the
// keys that they look for, and by the guards that their code has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/cache/cause.h"
#include "facts/cache/guard_sets.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// The rank whose artifact serves most, and whom. Those of another job, or with nothing in their
// log to tell by, are in neither list.
struct ArtifactOfRank {
  RankIndex of = -1;  // -1: no log tells
  std::vector<RankIndex> served = {}, others = {};
};

// Why keys of ranks are not those of the artifact.
struct OtherKeys {
  CauseKind kind = CauseKind::kUnknown;
  std::string text;
  std::vector<RankIndex> ranks;
  std::size_t lookups = 0;
};

// Code of a function that the artifact has under other guards, or not at all.
struct OtherGuards {
  std::string function, file;
  std::int64_t line = 0;
  std::vector<RankIndex> ranks;
  bool is_absent = false;                 // the rank of the artifact did not compile the function
  std::vector<GuardChange> changes = {};  // from the artifact's to theirs
};

struct OneArtifact {
  ArtifactOfRank caches, code;
  std::vector<OtherKeys> keys;
  std::vector<OtherGuards> guards;
  std::size_t bypassed = 0;  // lookups that no artifact serves: nothing of them is kept
  // Lookups of AOTAutograd's cache in a job with precompiled code: the key holds the graph's name,
  // which each process makes anew (torch/_functorch/_aot_autograd/autograd_cache.py,
  // precompile_backend_id). They are not judged.
  std::size_t of_named_graphs = 0;
};

struct CacheAnswer;
Result<OneArtifact> JudgeOneArtifact(Database& database, const CacheAnswer& answer);

}  // namespace tlparse
