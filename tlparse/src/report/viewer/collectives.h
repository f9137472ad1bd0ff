// The chunk collectives: what ranks issued, rank by sequence number, as `tlparse collectives`
// compares it. Bounded: where ranks are equal, only the latest numbers of each group are included.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

Result<std::string> CollectivesChunk(Database& database, std::int64_t run_id,
                                     std::int64_t origin_us);

}  // namespace tlparse
