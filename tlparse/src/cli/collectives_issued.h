// The part of `tlparse collectives` about issued collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/collectives/collectives.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {

// Prints nothing if no recorder dump, profile or log of the run has a collective. `all`:
// every collective, not only the last and the divergent ones of each group.
void PrintIssued(const CollectiveAnswer& answer, bool all);
// Nothing sets its ranks apart, and it is over.
bool IsAlike(const IssuedLine& line);
// "0-3,6", of indices into IssuedJob::ranks.
std::string RanksOf(const IssuedJob& job, const std::vector<std::size_t>& indices);

}  // namespace tlparse
