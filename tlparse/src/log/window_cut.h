// Where a window of a log can end so that no record is torn apart.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "log/line_index.h"

namespace tlparse {

// A record stays open (for payload lines that foreign lines tore off) until so many foreign bytes
// have followed it.
inline constexpr std::size_t kMaxTornBytes = 4 << 20;

// The offset in front of the last record of `bytes`, whose payload may go on behind them; in front
// of an earlier one where an aggregator interleaves "[rankN]:" lines, so that every payload line is
// on the same side as its record and a rank's latest record, which may still wait for its payload,
// is behind. 0: nowhere yet. `chunks` are those of FindChunks(bytes).
std::size_t FindCut(std::string_view bytes, const std::vector<ChunkStart>& chunks);

}  // namespace tlparse
