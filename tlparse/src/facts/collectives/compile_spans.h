// When ranks compiled, held against the times of their collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct CompileSpan {
  std::int64_t rank = 0, start_ns = 0, end_ns = 0;
};

// The compiles in a time, of forwards and backwards, as far as they lie in it. Not those of a thread beside the one that
// issues the collectives, which go on meanwhile.
Result<std::vector<CompileSpan>> CompilesIn(Database& database, std::int64_t run_id,
                                            std::int64_t from_ns, std::int64_t to_ns);

// How long a rank compiled in a time.
std::int64_t CompiledIn(const std::vector<CompileSpan>& compiles, std::optional<std::int64_t> rank,
                        std::int64_t from_ns, std::int64_t to_ns);

// How long some rank compiled before `to_ns`, at least: in collectives all wait for it.
std::int64_t CompiledByAny(const std::vector<CompileSpan>& compiles, std::int64_t to_ns);

}  // namespace tlparse
