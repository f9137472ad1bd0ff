// The part of `tlparse diff` that compares the results of two runs.
#pragma once

#include "facts/diff/digest_difference.h"

namespace tlparse {

void PrintDigests(const DigestDifference& digests, bool all);

}  // namespace tlparse
