// The vector part of Md5Many, open to its tests and benchmark.
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
  // Rough speed of all lanes together as a multiple of OpenSSL's: decides which messages are so
  // long that they would keep one lane busy while the others have run dry.
  std::size_t speed_up;
  // `state[word * lanes + lane]` is word A…D of a lane; `blocks[lane]` points to block_count * 64
  // readable bytes.
  void (*compress)(std::uint32_t* state, const std::uint8_t* const* blocks,
                   std::size_t block_count);
};

// Those that this processor can run, fastest first; empty where there is none.
std::span<const Md5Kernel> SupportedMd5Kernels();

// Md5Many with a given kernel.
void Md5ManyWith(const Md5Kernel& kernel, std::span<const std::string_view> messages,
                 std::span<Md5Digest> digests);

}  // namespace tlparse
