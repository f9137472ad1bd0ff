// The viewer's chunk `findings`: what sets ranks apart and why, from the answers of `tlparse
// ranks`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// JSON, schemas/json/viewer/findings.schema.json. A run without compiles has empty tables.
Result<std::string> FindingsChunk(Database& database, std::int64_t run_id);

}  // namespace tlparse
