// Where a window of a log can end so that no record is torn apart.
#pragma once

#include <cstddef>
#include <string_view>

namespace tlparse {

// A record stays open (for payload lines that foreign lines tore off) until so many foreign bytes
// have followed it.
inline constexpr std::size_t kMaxTornBytes = 4 << 20;

struct Cut {
  // In front of the last record, whose payload may go on behind the bytes; in front of an earlier
  // one where an aggregator interleaves "[rankN]:" lines, so that every payload line is on the same
  // side as its record and a rank's latest record, which may still wait for its payload, is behind.
  // 0: nowhere yet.
  std::size_t offset = 0;
  bool is_at_last_chunk = false;  // no other chunk begins behind it
};

// Looks at the end of `bytes` first: in most logs the last 64 KiB decide.
Cut FindCut(std::string_view bytes);

}  // namespace tlparse
