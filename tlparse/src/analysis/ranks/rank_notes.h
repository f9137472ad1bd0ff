// Which ranks have no log or no compile, and what is expected of differences. Internal to
// analysis/ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/ranks/ranks.h"

namespace tlparse {

// Sets missing ranks, further logs of a rank, and participants without a compile.
void FindAbsent(RanksAnswer& answer, const std::optional<std::int64_t>& world_size);
void AddNotes(RanksAnswer& answer);

}  // namespace tlparse
