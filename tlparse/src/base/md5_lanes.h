// The vector part of Md5Many; a header of its own for its tests and benchmark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/md5.h"

namespace tlparse {

inline constexpr std::size_t kMaxMd5Lanes = 16;

// A function that feeds whole blocks of several messages to MD5 at once.
struct Md5Kernel {
  std::string_view name;
  std::size_t lanes;
  // Approximate speed of all lanes together as a multiple of OpenSSL's. It decides which messages
  // are so long that they would keep one lane busy while the others are idle.
  std::size_t speed_up;
  // `state[word * lanes + lane]` is word A…D of a lane; `blocks[lane]` points to block_count * 64
  // readable bytes.
  void (*compress)(std::uint32_t* state, const std::uint8_t* const* blocks,
                   std::size_t block_count);
};

// Kernels that this processor can run, fastest first; may be empty.
std::span<const Md5Kernel> SupportedMd5Kernels();

// Md5Many with a given kernel.
void Md5ManyWith(const Md5Kernel& kernel, std::span<const std::string_view> messages,
                 std::span<Md5Digest> digests);

}  // namespace tlparse
