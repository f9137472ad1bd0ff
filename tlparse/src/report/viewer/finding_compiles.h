// The compiles that a finding is about, as rows: labels repeat between processes and, after
// torch._dynamo.reset(), within one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "findings/findings.h"
#include "store/database.h"

namespace tlparse {

// Ids of `compile` from the rows behind the finding, at most 200, those of its ranks first. Where
// those rows are processes or what they issued, the compiles that the finding names in these
// processes.
Result<std::vector<std::int64_t>> FindingCompiles(Database& database, std::int64_t run_id,
                                                  const Finding& finding);

}  // namespace tlparse
