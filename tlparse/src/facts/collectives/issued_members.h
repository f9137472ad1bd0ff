// Who belongs to a process group, and whose dumps are not whole; a part of LoadIssued (issued.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "facts/collectives/issued.h"

namespace tlparse {

// "[0, 1, 5]" → 0, 1, 5.
std::vector<std::int64_t> RanksInText(std::string_view text);

// Fills in IssuedJob::cut_dumps and IssuingRank::is_cut.
Result<void> LoadCutDumps(Database& database, IssuedJob& job);

// Fills in IssuedGroup::members and IssuedGroup::unknown; call after LoadCutDumps. Unknown members are
// added to IssuedJob::ranks.
Result<void> LoadMembers(Database& database, const std::optional<std::int64_t>& launch,
                         IssuedJob& job);

// Adds the ranks of dumps without entries to IssuedJob::ranks.
Result<void> AddDumpedRanks(Database& database, IssuedJob& job);

}  // namespace tlparse
