// Divides the time of kernel runs among Python lines: table kernel_line_row.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Rebuilds the rows of every kernel that the profiles of a run name. Call after all joins.
Result<void> DivideKernelsAmongLines(Database& database, std::int64_t run_id);

}  // namespace tlparse
