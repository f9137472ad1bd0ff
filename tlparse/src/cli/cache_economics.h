// What caches were worth, in the output of `tlparse cache`.
#pragma once

#include "base/json_writer.h"
#include "facts/cache/cache.h"

namespace tlparse {

void PrintEconomics(const CacheAnswer& answer);
void WriteEconomics(JsonWriter& json, const CacheEconomics& sums);

}  // namespace tlparse
