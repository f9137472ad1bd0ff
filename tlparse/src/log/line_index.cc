#include "log/line_index.h"

#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tlparse {

namespace {

// Bit i of the result: bytes[i] == c, for 64 bytes.
std::uint64_t Mask64(const char* bytes, char c) {
#if defined(__SSE2__)
  const __m128i pattern = _mm_set1_epi8(c);
  std::uint64_t mask = 0;
  for (int part = 0; part < 4; ++part) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * part));
    mask |= static_cast<std::uint64_t>(
                static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, pattern))))
            << (16 * part);
  }
  return mask;
#else
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<std::uint64_t>(bytes[i] == c) << i;
  return mask;
#endif
}

// std::popcount without an instruction set for it is a call into the compiler's library.
std::int64_t CountBits(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<std::int64_t>(bits * 0x0101010101010101 >> 56);
}

}  // namespace

std::int64_t FindChunks(std::string_view bytes, std::vector<ChunkStart>& starts) {
  if (bytes.empty()) return 0;
  std::int64_t line = 0;
  bool after_newline = true;  // the first byte starts a chunk even if it is a TAB
  if (bytes[0] == '\t') {
    starts.push_back({0, 0});
    after_newline = false;
  }
  std::size_t at = 0;
  const auto handle = [&](std::uint64_t newlines, std::uint64_t tabs) {
    std::uint64_t chunk_begins = ((newlines << 1) | (after_newline ? 1U : 0U)) & ~tabs;
    after_newline = (newlines >> 63) != 0;
    while (chunk_begins != 0) {
      const int bit = std::countr_zero(chunk_begins);
      const std::uint64_t before = bit == 0 ? 0 : newlines & (~std::uint64_t{0} >> (64 - bit));
      starts.push_back({at + static_cast<std::size_t>(bit), line + CountBits(before)});
      chunk_begins &= chunk_begins - 1;
    }
    line += CountBits(newlines);
  };
  for (; at + 64 <= bytes.size(); at += 64) {
    const std::uint64_t newlines = Mask64(bytes.data() + at, '\n');
    if (newlines != 0 || after_newline) handle(newlines, Mask64(bytes.data() + at, '\t'));
  }
  if (at < bytes.size()) {
    char tail[64];
    std::memset(tail, '\t', sizeof tail);  // what lies behind the end starts nothing
    std::memcpy(tail, bytes.data() + at, bytes.size() - at);
    handle(Mask64(tail, '\n'), Mask64(tail, '\t'));
  }
  return line;
}

}  // namespace tlparse
