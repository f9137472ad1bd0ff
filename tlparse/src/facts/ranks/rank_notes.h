// What is expected of differences. Internal to facts/ranks.
#pragma once

#include "facts/ranks/ranks.h"

namespace tlparse {

void AddNotes(RanksAnswer& answer);

}  // namespace tlparse
