// Finds bytes and pairs of bytes in a text, and copies the text up to them, 16 bytes at a time.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/ascii.h"

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

// Two neighbouring bytes to look for. kAnyDigit as second means 0 … 9.
struct BytePair {
  char first;
  char second;
};
inline constexpr char kAnyDigit = '\1';

template <std::size_t N>
bool IsOneOf(const std::array<BytePair, N>& pairs, char first, char second) {
  for (const BytePair& pair : pairs) {
    if (first == pair.first && (pair.second == kAnyDigit ? IsDigit(second) : second == pair.second))
      return true;
  }
  return false;
}

template <std::size_t N>
class PairScanner {
 public:
#ifdef __SSE2__
  explicit PairScanner(const std::array<BytePair, N>& pairs) : pairs_(pairs) {
    for (std::size_t index = 0; index < N; ++index) {
      firsts_[index] = _mm_set1_epi8(pairs[index].first);
      seconds_[index] = _mm_set1_epi8(pairs[index].second);
    }
  }
  // Bit i: byte i of the block at `bytes` and the byte after it are one of the pairs. Reads one
  // byte more than a block.
  unsigned Find(const char* bytes) const {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 1));
    const __m128i value = _mm_sub_epi8(b, _mm_set1_epi8('0'));
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
    __m128i found = _mm_setzero_si128();
    for (std::size_t index = 0; index < N; ++index) {
      const __m128i is_second =
          pairs_[index].second == kAnyDigit ? is_digit : _mm_cmpeq_epi8(b, seconds_[index]);
      found = _mm_or_si128(found, _mm_and_si128(_mm_cmpeq_epi8(a, firsts_[index]), is_second));
    }
    return static_cast<unsigned>(_mm_movemask_epi8(found));
  }

 private:
  const std::array<BytePair, N>& pairs_;
  __m128i firsts_[N];
  __m128i seconds_[N];
#else
  explicit PairScanner(const std::array<BytePair, N>& pairs) : pairs_(pairs) {}
  unsigned Find(const char* bytes) const {
    unsigned mask = 0;
    for (unsigned i = 0; i < kBlockBytes; ++i)
      mask |= static_cast<unsigned>(IsOneOf(pairs_, bytes[i], bytes[i + 1])) << i;
    return mask;
  }

 private:
  const std::array<BytePair, N>& pairs_;
#endif
};

}  // namespace tlparse
