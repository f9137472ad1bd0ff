// Recompiles for a size of a tensor. Internal to findings.
#pragma once

#include <cstdint>
#include <vector>

#include "facts/compiles/recompile_texts.h"
#include "findings/context.h"

namespace tlparse {

// Sets of those for a size whether dynamic=False asks for them, and which sizes changed. `ids`: their
// compiles.
Result<void> SetSizes(FindingContext& context, const std::vector<std::int64_t>& ids,
                      std::vector<Recompile>& recompiles);

}  // namespace tlparse
