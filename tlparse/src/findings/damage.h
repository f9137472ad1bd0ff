// What findings about logs have in common that are cut, or without a record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "findings/context.h"

namespace tlparse {

// What the import says of the logs of these ranks (ascending), which hold no record; empty: it says
// several things.
Result<std::string> WhyWithoutRecords(const FindingContext& context,
                                      const std::vector<std::int64_t>& ranks);

// All but the kind, the title and the ranks. `others`: those with which its process is not compared.
void SayWithoutRecords(const FindingContext& context, Finding& finding, bool is_one,
                       std::string_view others);

// Says which of these logs, which end where the finding says, are cut off: what their processes did
// after that is not known.
void SayCut(const FindingContext& context, Finding& finding, std::vector<RankIndex> who);

}  // namespace tlparse
