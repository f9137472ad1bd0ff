// Graph breaks of a compile of two sides.
#pragma once

#include <vector>

#include "facts/compiles/compile_facts.h"
#include "facts/diff/diff.h"

namespace tlparse {

// A break in the same place is the same one, whatever PyTorch says of it.
void CompareBreaks(const std::vector<FactBreak>& a, const std::vector<FactBreak>& b,
                   CompileChange& change);

}  // namespace tlparse
