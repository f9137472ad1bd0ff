// MD5 (RFC 1321) of several messages side by side: lane i of every vector belongs to message i.
//
// One message alone is bound by latency, since each of the 64 steps of a block needs the one before
// (about 0.6 GB/s). The kernels differ in vector width only; their 64 steps are one macro,
// because a function compiled for AVX2 cannot share an inline function with one that is not.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/md5_lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tlparse {
namespace {

#if defined(__x86_64__)

// clang-format off
// STEP(round function, a, b, c, d, index of the message word, constant, rotation)
#define TLPARSE_MD5_STEPS(STEP) \
  STEP(F, a, b, c, d, 0, 0xd76aa478u, 7) \
  STEP(F, d, a, b, c, 1, 0xe8c7b756u, 12) \
  STEP(F, c, d, a, b, 2, 0x242070dbu, 17) \
  STEP(F, b, c, d, a, 3, 0xc1bdceeeu, 22) \
  STEP(F, a, b, c, d, 4, 0xf57c0fafu, 7) \
  STEP(F, d, a, b, c, 5, 0x4787c62au, 12) \
  STEP(F, c, d, a, b, 6, 0xa8304613u, 17) \
  STEP(F, b, c, d, a, 7, 0xfd469501u, 22) \
  STEP(F, a, b, c, d, 8, 0x698098d8u, 7) \
  STEP(F, d, a, b, c, 9, 0x8b44f7afu, 12) \
  STEP(F, c, d, a, b, 10, 0xffff5bb1u, 17) \
  STEP(F, b, c, d, a, 11, 0x895cd7beu, 22) \
  STEP(F, a, b, c, d, 12, 0x6b901122u, 7) \
  STEP(F, d, a, b, c, 13, 0xfd987193u, 12) \
  STEP(F, c, d, a, b, 14, 0xa679438eu, 17) \
  STEP(F, b, c, d, a, 15, 0x49b40821u, 22) \
  STEP(G, a, b, c, d, 1, 0xf61e2562u, 5) \
  STEP(G, d, a, b, c, 6, 0xc040b340u, 9) \
  STEP(G, c, d, a, b, 11, 0x265e5a51u, 14) \
  STEP(G, b, c, d, a, 0, 0xe9b6c7aau, 20) \
  STEP(G, a, b, c, d, 5, 0xd62f105du, 5) \
  STEP(G, d, a, b, c, 10, 0x02441453u, 9) \
  STEP(G, c, d, a, b, 15, 0xd8a1e681u, 14) \
  STEP(G, b, c, d, a, 4, 0xe7d3fbc8u, 20) \
  STEP(G, a, b, c, d, 9, 0x21e1cde6u, 5) \
  STEP(G, d, a, b, c, 14, 0xc33707d6u, 9) \
  STEP(G, c, d, a, b, 3, 0xf4d50d87u, 14) \
  STEP(G, b, c, d, a, 8, 0x455a14edu, 20) \
  STEP(G, a, b, c, d, 13, 0xa9e3e905u, 5) \
  STEP(G, d, a, b, c, 2, 0xfcefa3f8u, 9) \
  STEP(G, c, d, a, b, 7, 0x676f02d9u, 14) \
  STEP(G, b, c, d, a, 12, 0x8d2a4c8au, 20) \
  STEP(H, a, b, c, d, 5, 0xfffa3942u, 4) \
  STEP(H, d, a, b, c, 8, 0x8771f681u, 11) \
  STEP(H, c, d, a, b, 11, 0x6d9d6122u, 16) \
  STEP(H, b, c, d, a, 14, 0xfde5380cu, 23) \
  STEP(H, a, b, c, d, 1, 0xa4beea44u, 4) \
  STEP(H, d, a, b, c, 4, 0x4bdecfa9u, 11) \
  STEP(H, c, d, a, b, 7, 0xf6bb4b60u, 16) \
  STEP(H, b, c, d, a, 10, 0xbebfbc70u, 23) \
  STEP(H, a, b, c, d, 13, 0x289b7ec6u, 4) \
  STEP(H, d, a, b, c, 0, 0xeaa127fau, 11) \
  STEP(H, c, d, a, b, 3, 0xd4ef3085u, 16) \
  STEP(H, b, c, d, a, 6, 0x04881d05u, 23) \
  STEP(H, a, b, c, d, 9, 0xd9d4d039u, 4) \
  STEP(H, d, a, b, c, 12, 0xe6db99e5u, 11) \
  STEP(H, c, d, a, b, 15, 0x1fa27cf8u, 16) \
  STEP(H, b, c, d, a, 2, 0xc4ac5665u, 23) \
  STEP(I, a, b, c, d, 0, 0xf4292244u, 6) \
  STEP(I, d, a, b, c, 7, 0x432aff97u, 10) \
  STEP(I, c, d, a, b, 14, 0xab9423a7u, 15) \
  STEP(I, b, c, d, a, 5, 0xfc93a039u, 21) \
  STEP(I, a, b, c, d, 12, 0x655b59c3u, 6) \
  STEP(I, d, a, b, c, 3, 0x8f0ccc92u, 10) \
  STEP(I, c, d, a, b, 10, 0xffeff47du, 15) \
  STEP(I, b, c, d, a, 1, 0x85845dd1u, 21) \
  STEP(I, a, b, c, d, 8, 0x6fa87e4fu, 6) \
  STEP(I, d, a, b, c, 15, 0xfe2ce6e0u, 10) \
  STEP(I, c, d, a, b, 6, 0xa3014314u, 15) \
  STEP(I, b, c, d, a, 13, 0x4e0811a1u, 21) \
  STEP(I, a, b, c, d, 4, 0xf7537e82u, 6) \
  STEP(I, d, a, b, c, 11, 0xbd3af235u, 10) \
  STEP(I, c, d, a, b, 2, 0x2ad7d2bbu, 15) \
  STEP(I, b, c, d, a, 9, 0xeb86d391u, 21)
// clang-format on

// Round functions as sums where the bits do not overlap: what does not depend on `b`, the result of
// the step before, can be added early.
#define TLPARSE_MD5_F(b, c, d) (((c ^ d) & b) ^ d)
#define TLPARSE_MD5_G(b, c, d) ((~d & c) + (d & b))
#define TLPARSE_MD5_H(b, c, d) ((c ^ d) ^ b)
#define TLPARSE_MD5_I(b, c, d) ((~d | b) ^ c)

#define TLPARSE_MD5_VECTOR_STEP(f, a, b, c, d, word, constant, rotation) \
  a += words[word] + constant;                                           \
  a += TLPARSE_MD5_##f(b, c, d);                                         \
  a = ((a << rotation) | (a >> (32 - rotation))) + b;

using Vec4 = std::uint32_t __attribute__((vector_size(16)));
using Vec8 = std::uint32_t __attribute__((vector_size(32)));
using Vec16 = std::uint32_t __attribute__((vector_size(64)));

void CompressSse2(std::uint32_t* state, const std::uint8_t* const* blocks,
                  std::size_t block_count) {
  Vec4 state_vectors[4];
  std::memcpy(state_vectors, state, sizeof(state_vectors));
  Vec4 a = state_vectors[0], b = state_vectors[1], c = state_vectors[2], d = state_vectors[3];
  for (std::size_t block = 0; block < block_count; ++block) {
    Vec4 words[16];
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const std::size_t offset = block * 64 + quarter * 16;
      const auto load = [&](std::size_t lane) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks[lane] + offset));
      };
      const __m128i row0 = load(0), row1 = load(1), row2 = load(2), row3 = load(3);
      const __m128i low01 = _mm_unpacklo_epi32(row0, row1);
      const __m128i low23 = _mm_unpacklo_epi32(row2, row3);
      const __m128i high01 = _mm_unpackhi_epi32(row0, row1);
      const __m128i high23 = _mm_unpackhi_epi32(row2, row3);
      words[quarter * 4 + 0] = reinterpret_cast<Vec4>(_mm_unpacklo_epi64(low01, low23));
      words[quarter * 4 + 1] = reinterpret_cast<Vec4>(_mm_unpackhi_epi64(low01, low23));
      words[quarter * 4 + 2] = reinterpret_cast<Vec4>(_mm_unpacklo_epi64(high01, high23));
      words[quarter * 4 + 3] = reinterpret_cast<Vec4>(_mm_unpackhi_epi64(high01, high23));
    }
    const Vec4 start_a = a, start_b = b, start_c = c, start_d = d;
    TLPARSE_MD5_STEPS(TLPARSE_MD5_VECTOR_STEP)
    a += start_a;
    b += start_b;
    c += start_c;
    d += start_d;
  }
  state_vectors[0] = a;
  state_vectors[1] = b;
  state_vectors[2] = c;
  state_vectors[3] = d;
  std::memcpy(state, state_vectors, sizeof(state_vectors));
}

// 8 rows of 8 words become 8 columns.
__attribute__((target("avx2"), always_inline)) inline void Transpose8(
    const std::uint8_t* const* blocks, std::size_t offset, Vec8* words) {
  __m256i row[8], pair[8], quad[8];
  for (std::size_t i = 0; i < 8; ++i) {
    row[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(blocks[i] + offset));
  }
  for (std::size_t i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (std::size_t i = 0; i < 8; i += 4) {
    quad[i] = _mm256_unpacklo_epi64(pair[i], pair[i + 2]);
    quad[i + 1] = _mm256_unpackhi_epi64(pair[i], pair[i + 2]);
    quad[i + 2] = _mm256_unpacklo_epi64(pair[i + 1], pair[i + 3]);
    quad[i + 3] = _mm256_unpackhi_epi64(pair[i + 1], pair[i + 3]);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    words[i] = reinterpret_cast<Vec8>(_mm256_permute2x128_si256(quad[i], quad[i + 4], 0x20));
    words[i + 4] = reinterpret_cast<Vec8>(_mm256_permute2x128_si256(quad[i], quad[i + 4], 0x31));
  }
}

__attribute__((target("avx2"))) void CompressAvx2(std::uint32_t* state,
                                                  const std::uint8_t* const* blocks,
                                                  std::size_t block_count) {
  Vec8 state_vectors[4];
  std::memcpy(state_vectors, state, sizeof(state_vectors));
  Vec8 a = state_vectors[0], b = state_vectors[1], c = state_vectors[2], d = state_vectors[3];
  for (std::size_t block = 0; block < block_count; ++block) {
    Vec8 words[16];
    Transpose8(blocks, block * 64, words);
    Transpose8(blocks, block * 64 + 32, words + 8);
    const Vec8 start_a = a, start_b = b, start_c = c, start_d = d;
    TLPARSE_MD5_STEPS(TLPARSE_MD5_VECTOR_STEP)
    a += start_a;
    b += start_b;
    c += start_c;
    d += start_d;
  }
  state_vectors[0] = a;
  state_vectors[1] = b;
  state_vectors[2] = c;
  state_vectors[3] = d;
  std::memcpy(state, state_vectors, sizeof(state_vectors));
}

// AVX-512 has any function of three bits, and rotation, as one instruction each.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // GCC's own header passes an undefined vector under a full mask
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define TLPARSE_MD5_TABLE_F 0xca
#define TLPARSE_MD5_TABLE_G 0xe4
#define TLPARSE_MD5_TABLE_H 0x96
#define TLPARSE_MD5_TABLE_I 0x39
#define TLPARSE_MD5_AVX512_STEP(f, a, b, c, d, word, constant, rotation)                \
  a = _mm512_add_epi32(                                                                 \
      a, _mm512_add_epi32(words[word], _mm512_set1_epi32(static_cast<int>(constant)))); \
  a = _mm512_add_epi32(a, _mm512_ternarylogic_epi32(b, c, d, TLPARSE_MD5_TABLE_##f));   \
  a = _mm512_add_epi32(_mm512_rol_epi32(a, rotation), b);

// 16 rows of 16 words become 16 columns.
__attribute__((target("avx512f"), always_inline)) inline void Transpose16(
    const std::uint8_t* const* blocks, std::size_t offset, __m512i* words) {
  __m512i row[16], pair[16], quad[16];
  for (std::size_t i = 0; i < 16; ++i) row[i] = _mm512_loadu_si512(blocks[i] + offset);
  for (std::size_t i = 0; i < 16; i += 2) {
    pair[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    pair[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  // quad[4 * g + j]: words j, 4 + j, 8 + j, 12 + j (one per 128 bits) of rows 4 g … 4 g + 3.
  for (std::size_t i = 0; i < 16; i += 4) {
    quad[i] = _mm512_unpacklo_epi64(pair[i], pair[i + 2]);
    quad[i + 1] = _mm512_unpackhi_epi64(pair[i], pair[i + 2]);
    quad[i + 2] = _mm512_unpacklo_epi64(pair[i + 1], pair[i + 3]);
    quad[i + 3] = _mm512_unpackhi_epi64(pair[i + 1], pair[i + 3]);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const __m512i even_low = _mm512_shuffle_i32x4(quad[j], quad[4 + j], 0x88);
    const __m512i even_high = _mm512_shuffle_i32x4(quad[8 + j], quad[12 + j], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(quad[j], quad[4 + j], 0xdd);
    const __m512i odd_high = _mm512_shuffle_i32x4(quad[8 + j], quad[12 + j], 0xdd);
    words[j] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    words[j + 4] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    words[j + 8] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    words[j + 12] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  }
}

__attribute__((target("avx512f"))) void CompressAvx512(std::uint32_t* state,
                                                       const std::uint8_t* const* blocks,
                                                       std::size_t block_count) {
  __m512i a = _mm512_loadu_si512(state), b = _mm512_loadu_si512(state + 16);
  __m512i c = _mm512_loadu_si512(state + 32), d = _mm512_loadu_si512(state + 48);
  for (std::size_t block = 0; block < block_count; ++block) {
    __m512i words[16];
    Transpose16(blocks, block * 64, words);
    const __m512i start_a = a, start_b = b, start_c = c, start_d = d;
    TLPARSE_MD5_STEPS(TLPARSE_MD5_AVX512_STEP)
    a = _mm512_add_epi32(a, start_a);
    b = _mm512_add_epi32(b, start_b);
    c = _mm512_add_epi32(c, start_c);
    d = _mm512_add_epi32(d, start_d);
  }
  _mm512_storeu_si512(state, a);
  _mm512_storeu_si512(state + 16, b);
  _mm512_storeu_si512(state + 32, c);
  _mm512_storeu_si512(state + 48, d);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif  // __x86_64__

}  // namespace

std::span<const Md5Kernel> SupportedMd5Kernels() {
#if defined(__x86_64__)
  static constexpr Md5Kernel kKernels[] = {{"avx512f", 16, 9, CompressAvx512},
                                           {"avx2", 8, 5, CompressAvx2},
                                           {"sse2", 4, 3, CompressSse2}};
  static const std::size_t first = __builtin_cpu_supports("avx512f") ? 0
                                   : __builtin_cpu_supports("avx2")  ? 1
                                                                     : 2;
  return std::span(kKernels).subspan(first);
#else
  return {};
#endif
}

}  // namespace tlparse
