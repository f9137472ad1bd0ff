// The part of `tlparse diff` that compares the results of two runs.
#pragma once

#include <optional>

#include "analysis/diff/digest_difference.h"
#include "cli/answer.h"

namespace tlparse {

void PrintDigests(const DigestDifference& digests, bool all);
// The member "digests" of an open object.
void WriteDigests(JsonWriter& json, const std::optional<DigestDifference>& digests);

}  // namespace tlparse
