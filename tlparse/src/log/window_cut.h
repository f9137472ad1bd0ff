// Finds where a window of a log can end without dividing a record.
#pragma once

#include <cstddef>
#include <string_view>

namespace tlparse {

// A record stays open (for payload lines that come after foreign lines) until this many foreign
// bytes have followed it.
inline constexpr std::size_t kMaxTornBytes = 4 << 20;

struct Cut {
  // Before the last record, whose payload may continue after the bytes; before an earlier record if
  // an aggregator interleaves "[rankN]:" lines, so that every payload line is on the same side as
  // its record and a rank's latest record, whose payload may still follow, is after the cut.
  // 0: no such place yet.
  std::size_t offset = 0;
  bool is_at_last_stanza = false;  // no other stanza begins after it
};

// Looks at the end of `bytes` first: in most logs the last 64 KiB decide.
Cut FindCut(std::string_view bytes);

}  // namespace tlparse
