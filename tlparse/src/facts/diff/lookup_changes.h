// The cache lookups of one compile on two sides: states and keys, and why the keys differ.
#pragma once

#include <vector>

#include "base/result.h"
#include "facts/compiles/compile_facts.h"
#include "facts/diff/diff.h"
#include "store/database.h"

namespace tlparse {

struct LookupSide {
  Database& database;
  const ParticipantFacts& facts;
  const CompileFacts& compile;
};

// Lookups whose state or key differs, by layer, direction and order.
Result<std::vector<CacheChange>> CompareLookups(const LookupSide& a, const LookupSide& b);

}  // namespace tlparse
