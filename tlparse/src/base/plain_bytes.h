// Finding and copying what needs no escape, 16 bytes at a time.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace tlparse {

inline constexpr std::size_t kBlockBytes = 16;

// Bit i: byte i of the block at `bytes` is one of `kChars` or below `kControls`.
template <char kControls, char... kChars>
unsigned SpecialBytes(const char* bytes) {
#ifdef __SSE2__
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  __m128i special = _mm_setzero_si128();
  if constexpr (kControls > 0)
    special = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(kControls - 1)), block);
  ((special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8(kChars)))), ...);
  return static_cast<unsigned>(_mm_movemask_epi8(special));
#else
  unsigned mask = 0;
  for (unsigned i = 0; i < kBlockBytes; ++i) {
    const bool is_special =
        static_cast<unsigned char>(bytes[i]) < kControls || ((bytes[i] == kChars) || ...);
    mask |= static_cast<unsigned>(is_special) << i;
  }
  return mask;
#endif
}

// Characters that must be escaped in a JSON string.
inline unsigned JsonSpecialBytes(const char* bytes) { return SpecialBytes<0x20, '"', '\\'>(bytes); }

// Copies the bytes before the next special byte, at most one block, and advances both positions.
// True: `at` is now at a special byte. Needs room for a whole block at `to`.
template <unsigned (*kSpecialBytes)(const char*)>
bool CopyPlain(const char*& at, const char* end, char*& to) {
  std::array<char, kBlockBytes> tail;
  const auto left = static_cast<std::size_t>(end - at);
  const char* block = at;
  if (left < kBlockBytes) {
    std::fill(std::copy(at, end, tail.begin()), tail.end(), ' ');
    block = tail.data();
  }
  const auto plain =
      static_cast<std::size_t>(std::countr_zero(kSpecialBytes(block) | 1U << kBlockBytes));
  std::memcpy(to, block, kBlockBytes);
  const std::size_t taken = std::min(left, plain);
  to += taken;
  at += taken;
  return plain < kBlockBytes && plain < left;
}

}  // namespace tlparse
