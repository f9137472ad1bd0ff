// What is expected of differences. Internal to analysis/ranks.
#pragma once

#include "facts/ranks/ranks.h"

namespace tlparse {

void AddNotes(RanksAnswer& answer);

}  // namespace tlparse
