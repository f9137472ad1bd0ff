// What a query that names an unknown column or table may have meant.
#pragma once

#include <string>

#include "store/database.h"

namespace tlparse {

// SQLite's message; of one that says "no such column: x" or "no such table: x" with the name that
// is nearest to x, if one is near.
std::string WithNearestName(Database& database, std::string message);

}  // namespace tlparse
