// The part of `tlparse collectives` about what ranks issued.
#pragma once

#include "analysis/collectives/collectives.h"
#include "base/json_writer.h"

namespace tlparse {

// Prints nothing if the run holds no recorder dump, profile or log that tells it. `all`: every
// collective, not only the last and the odd ones of each group.
void PrintIssued(const CollectiveAnswer& answer, bool all);
// An object, or null.
void WriteIssued(JsonWriter& json, const CollectiveAnswer& answer);

}  // namespace tlparse
