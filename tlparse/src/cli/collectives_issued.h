// The part of `tlparse collectives` about issued collectives.
#pragma once

#include "base/json_writer.h"
#include "facts/collectives/collectives.h"

namespace tlparse {

// Prints nothing if no recorder dump, profile or log of the run has a collective. `all`:
// every collective, not only the last and the divergent ones of each group.
void PrintIssued(const CollectiveAnswer& answer, bool all);
// An object, or null.
void WriteIssued(JsonWriter& json, const CollectiveAnswer& answer);
// A list.
void WriteNotCompared(JsonWriter& json, const CollectiveAnswer& answer);

}  // namespace tlparse
