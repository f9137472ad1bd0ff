// The chunk memory/<id>: what was alive over the time of one recording of an allocator.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// kNotFound: the run has no recording `snapshot_id`.
Result<std::string> MemoryChunk(Database& database, std::int64_t run_id, std::int64_t snapshot_id);

}  // namespace tlparse
