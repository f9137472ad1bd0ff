// Finds the lines that do not start with a TAB. Such a line and the TAB lines after it are one
// chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tlparse {

struct ChunkStart {
  std::size_t offset;  // of the chunk's first byte in the window
  std::int64_t line;   // 0-based line in the window
};

// Appends the starts of chunks in `bytes` to `starts`; the first byte always starts one. Returns
// the number of LFs. Only LF ends a line: payloads contain CR, NUL, U+2028 (reference 1.4).
std::int64_t FindChunks(std::string_view bytes, std::vector<ChunkStart>& starts);

// The first line of a chunk, without its LF or CR LF.
inline std::string_view FirstLine(std::string_view chunk) {
  std::string_view line = chunk.substr(0, chunk.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace tlparse
