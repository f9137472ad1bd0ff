// Decodes payload lines: every line starts with one TAB, lines are joined by LF.
// Also joins the lines of payloads that were torn apart.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/md5.h"

namespace tlparse {

// The payload in `raw` (TAB lines, the first TAB included, the last LF not): what PyTorch hashed.
// `remove_cr` drops one CR before every line end and the end. Returns the number of bytes written
// to `to`, at most raw.size(); up to kRemoveTabsSlack bytes after them are overwritten. Reads up to
// 16 bytes past the end of `raw` (windows and arenas have that slack).
inline constexpr std::size_t kRemoveTabsSlack = 16;
std::size_t RemoveTabs(std::string_view raw, bool remove_cr, char* to);

// Whether every line of `raw` ends in CR, as after a transfer in text mode.
bool EveryLineEndsInCr(std::string_view raw);

// A payload whose lines are not contiguous: foreign lines are between them, or an aggregator gave
// each one a prefix. All texts are TAB lines, the first TAB included, the last LF not, and must
// outlive the object.
class TornPayload {
 public:
  // `lines` (may be empty) directly follow the header; `claimed` is the MD5 of the whole payload.
  TornPayload(std::string_view lines, const Md5Digest& claimed);
  // Appends lines; false: the payload is complete without them.
  bool Add(std::string_view lines);
  // All lines, joined.
  std::string_view Join(Arena& arena) const;

 private:
  std::vector<std::string_view> pieces_;
  Md5Stream md5_;
  Md5Digest claimed_;
  bool is_complete_ = false;
};

}  // namespace tlparse
