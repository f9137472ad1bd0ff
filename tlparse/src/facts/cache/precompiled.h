// Precompiled code (caching_precompile): what processes saved, what they loaded, and what they
// compiled again although they had loaded code for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/cache/guard_sets.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// An entry as the last call that saved it had it, of all ranks that had the same. One store has one
// entry of a key: of ranks that share it, the last one to write.
struct SavedEntry {
  std::string key, function, device_type;
  std::int64_t line = 0;
  std::optional<std::int64_t> codes;
  std::int64_t backends = 0, missing_backends = 0;
  std::string error;  // it was not saved: the text of the exception
  std::vector<RankIndex> ranks;
  std::int64_t record_id = 0;  // of the first rank
};

// An entry that ranks saved with different guards.
struct DifferentEntry {
  std::string key, function;
  std::int64_t line = 0;
  std::vector<RankIndex> ranks, other_ranks;  // the most, and those of the next other guards
  std::vector<GuardChange> changes = {};      // from `ranks` to `other_ranks`
  std::int64_t record_id = 0, other_record_id = 0;
};

// A function of which code was loaded, and which was compiled all the same.
struct CompiledAgain {
  std::string function, file, loaded, compiled;  // the latter two: labels, of the first rank
  std::int64_t line = 0;
  std::vector<RankIndex> ranks;
  std::int64_t loaded_id = 0, compiled_id = 0;  // of the first rank
  // Between the loaded code that differs least and the new one; empty: their guards are equal.
  std::vector<GuardChange> changes = {};
  std::optional<double> seconds;  // of the rank that took longest
};

struct PrecompiledCode {
  std::vector<SavedEntry> entries;
  std::vector<DifferentEntry> different;
  std::vector<CompiledAgain> again;
  std::size_t loaded = 0;            // compiles that were loaded
  std::vector<RankIndex> loaded_on;  // by each of them
  bool empty() const { return entries.empty() && loaded == 0; }
};

Result<PrecompiledCode> FindPrecompiledCode(Database& database, const Job& job);

}  // namespace tlparse
