// Where the recompiles of a function stand among the findings. Internal to findings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/compiles/recompile_texts.h"
#include "findings/context.h"

namespace tlparse {

// Adds the finding on the recompiles of a function. Recompiles on some ranks only are a divergence:
// where that is reported already, the two become one. Several recompiles, or the limit, say more than
// a compile that others lack; repeated ones also more than another graph.
enum class RecompileExtent : std::uint8_t { kOne, kSeveral, kRepeated };
void AddRecompiles(FindingContext& context, Finding own, RecompileExtent extent);

// Notes on functions that the same ranks recompiled for one reason become one, those on functions of
// libraries the evidence of the user's.
void FoldRecompiles(FindingContext& context);

// What to try against recompiles of finding.function, which is in `file`.
void SetAdvice(const std::vector<Recompile>& recompiles, const std::string& file, Finding& finding);

}  // namespace tlparse
