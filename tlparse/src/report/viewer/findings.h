// The viewer's chunk `findings`: the findings of the latest launch as `tlparse findings` tells them,
// and what the page of ranks shows of the answers of `tlparse ranks`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// JSON, schemas/json/viewer/findings.schema.json. A run without compiles has empty tables. Times
// count from `origin_us`.
Result<std::string> FindingsChunk(Database& database, std::int64_t run_id, std::int64_t origin_us);

}  // namespace tlparse
