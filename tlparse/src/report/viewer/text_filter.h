// Which texts may hold a word, without reading them: a set of the groups of three letters that
// occur, without regard to case, in at most 16 kB. A word of which a group is missing does not
// occur.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

class TextFilter {
 public:
  TextFilter() : bits_(kBits) {}

  void Add(std::string_view piece);

  // As many as are needed, a power of two: an eighth to a quarter of the bits is set. Bit n, the
  // lowest of a byte first, is of groups whose hash begins with n. As data/search_files.ts reads it.
  std::string Bytes() const;

 private:
  static constexpr std::uint32_t kBits = 1 << 17;
  std::vector<bool> bits_;
  std::uint32_t last_ = 0;  // the last letters, of a piece before as well
};

}  // namespace tlparse
