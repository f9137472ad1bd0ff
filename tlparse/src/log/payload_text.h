// Payload lines and what they spell (reference 1.4): every line starts with one TAB, lines are joined by LF.
#pragma once

#include <cstddef>
#include <string_view>

namespace tlparse {

// The payload in `raw` (TAB lines, the first TAB included, the last LF not): what PyTorch hashed. `remove_cr` drops one CR before
// every line end and the end. Returns the number of bytes written to `to`, at most raw.size(); up to kRemoveTabsSlack bytes behind
// them are scratch. Reads up to 16 bytes behind the end of `raw` (windows and arenas have that slack).
inline constexpr std::size_t kRemoveTabsSlack = 16;
std::size_t RemoveTabs(std::string_view raw, bool remove_cr, char* to);

// Whether every line of `raw` ends in CR: what a transport in text mode does to a file.
bool EveryLineEndsInCr(std::string_view raw);

}  // namespace tlparse
