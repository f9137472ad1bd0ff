#include "log/line_index.h"

#include <bit>
#include <cstring>

#include "base/plain_bytes.h"

namespace tlparse {

namespace {

// Bit i of the result: bytes[i] == kChar, for 64 bytes.
template <char kChar>
std::uint64_t Mask64(const char* bytes) {
  std::uint64_t mask = 0;
  for (std::size_t at = 0; at < 64; at += kBlockBytes)
    mask |= std::uint64_t{SpecialBytes<0, kChar>(bytes + at)} << at;
  return mask;
}

// std::popcount without an instruction set for it is a call into the compiler's library.
std::int64_t CountBits(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<std::int64_t>(bits * 0x0101010101010101 >> 56);
}

}  // namespace

std::int64_t FindStanzas(std::string_view bytes, std::vector<StanzaStart>& starts) {
  if (bytes.empty()) return 0;
  std::int64_t line = 0;
  bool after_newline = true;  // the first byte starts a stanza even if it is a TAB
  if (bytes[0] == '\t') {
    starts.push_back({0, 0});
    after_newline = false;
  }
  std::size_t at = 0;
  const auto handle = [&](std::uint64_t newlines, std::uint64_t tabs) {
    std::uint64_t stanza_begins = ((newlines << 1) | (after_newline ? 1U : 0U)) & ~tabs;
    after_newline = (newlines >> 63) != 0;
    while (stanza_begins != 0) {
      const int bit = std::countr_zero(stanza_begins);
      const std::uint64_t before = bit == 0 ? 0 : newlines & (~std::uint64_t{0} >> (64 - bit));
      starts.push_back({at + static_cast<std::size_t>(bit), line + CountBits(before)});
      stanza_begins &= stanza_begins - 1;
    }
    line += CountBits(newlines);
  };
  for (; at + 64 <= bytes.size(); at += 64) {
    const std::uint64_t newlines = Mask64<'\n'>(bytes.data() + at);
    if (newlines != 0 || after_newline) handle(newlines, Mask64<'\t'>(bytes.data() + at));
  }
  if (at < bytes.size()) {
    char tail[64];
    std::memset(tail, '\t', sizeof tail);  // what lies behind the end starts nothing
    std::memcpy(tail, bytes.data() + at, bytes.size() - at);
    handle(Mask64<'\n'>(tail), Mask64<'\t'>(tail));
  }
  return line;
}

}  // namespace tlparse
