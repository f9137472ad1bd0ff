// The closest earlier keys of lookups, in the output of `tlparse cache`.
#pragma once

#include "facts/cache/cache.h"

namespace tlparse {

void PrintClosest(const CacheAnswer& answer);

}  // namespace tlparse
