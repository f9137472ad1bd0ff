// The part of `tlparse diff` that compares the results of two runs.
#pragma once

#include <optional>

#include "cli/answer.h"
#include "facts/diff/digest_difference.h"

namespace tlparse {

void PrintDigests(const DigestDifference& digests, bool all);
// The member "digests" of an open object.
void WriteDigests(JsonWriter& json, const std::optional<DigestDifference>& digests);

}  // namespace tlparse
