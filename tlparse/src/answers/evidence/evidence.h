// The lines of the inputs behind a finding: what its sentences stand on, for people who do not take
// a sentence for granted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "findings/findings.h"
#include "store/database.h"

namespace tlparse {

inline constexpr std::size_t kMostEvidenceText = 200;

// At most two lines for each of `finding.rows`. Of a record with a payload the line that has most
// words of the finding.
Result<std::vector<EvidenceLine>> EvidenceOf(Database& database, const Finding& finding);

}  // namespace tlparse
