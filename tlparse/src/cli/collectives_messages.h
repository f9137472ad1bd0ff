// The part of `tlparse collectives` about sends and receives: a row for each pair of ranks and
// direction.
#pragma once

#include "base/json_writer.h"
#include "facts/collectives/issued.h"

namespace tlparse {

void PrintMessages(const IssuedJob& job);
// The member "messages" of an object.
void WriteMessages(JsonWriter& json, const IssuedJob& job);

}  // namespace tlparse
