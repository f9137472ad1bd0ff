// What caches were worth, in the output of `tlparse cache`.
#pragma once

#include "analysis/cache/cache.h"
#include "base/json_writer.h"

namespace tlparse {

void PrintEconomics(const CacheAnswer& answer);
void WriteEconomics(JsonWriter& json, const CacheEconomics& sums);

}  // namespace tlparse
