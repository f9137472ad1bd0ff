// Finds the lines that do not start with a TAB. Such a line and the TAB lines after it are one
// stanza.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tlparse {

struct StanzaStart {
  std::size_t offset;  // of the stanza's first byte in the window
  std::int64_t line;   // 0-based line in the window
};

// Appends the starts of stanzas in `bytes` to `starts`; the first byte always starts one. Returns
// the number of LFs. Only LF ends a line: payloads contain CR, NUL, U+2028.
std::int64_t FindStanzas(std::string_view bytes, std::vector<StanzaStart>& starts);

// The first line of a stanza, without its LF or CR LF.
inline std::string_view FirstLine(std::string_view stanza) {
  std::string_view line = stanza.substr(0, stanza.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace tlparse
