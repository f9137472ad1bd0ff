// Recompiles of which text of TORCH_LOGS alone tells; and phrases for what such texts tell. Internal to findings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "findings/context.h"

namespace tlparse {

// " in each of 2 processes"; empty: there is one.
std::string OnEach(std::int64_t processes, std::int64_t least, std::int64_t most);
// "err.txt and 2 other texts"
std::string TextsOf(std::string_view path, std::int64_t paths);
// The ranks that a text names, "0,1", and how many processes there are.
void SetTextRanks(std::string_view ranks, std::int64_t processes, Finding& finding);

Result<void> FindRecompilesInText(FindingContext& context);

}  // namespace tlparse
