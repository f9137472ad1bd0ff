// The part of `tlparse diff` that says what holds more memory.
#pragma once

#include "facts/diff/memory_difference.h"

namespace tlparse {

void PrintMemoryDifference(const MemoryDifference& memory, bool all);

}  // namespace tlparse
