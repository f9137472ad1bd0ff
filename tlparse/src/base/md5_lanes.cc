// Divides messages among the lanes of a kernel, and the longest ones between the lanes and OpenSSL.
#include "base/md5_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

namespace tlparse {
namespace {

constexpr std::size_t kMd5BlockBytes = 64;

// 0x80, zeros and the length in bits follow a message.
std::size_t PaddedBlocks(std::size_t length) { return (length + 8) / kMd5BlockBytes + 1; }

// Runs a list of messages through the lanes of a kernel; a lane whose message ends takes the next.
class LaneRun {
 public:
  LaneRun(const Md5Kernel& kernel, std::span<const std::string_view> messages,
          std::span<const std::uint32_t> order, std::span<Md5Digest> digests)
      : kernel_(kernel), messages_(messages), order_(order), digests_(digests) {}

  void Run() {
    for (std::size_t lane = 0; lane < kernel_.lanes; ++lane) StartNext(lane);
    while (active_ > 0) {
      std::size_t step_blocks = SIZE_MAX;
      const std::uint8_t* readable = nullptr;
      for (std::size_t lane = 0; lane < kernel_.lanes; ++lane) {
        if (blocks_left_[lane] == 0) continue;
        step_blocks = std::min(step_blocks, blocks_left_[lane]);
        readable = position_[lane];
      }
      // A lane without a message computes an unused digest over another lane's bytes.
      for (std::size_t lane = 0; lane < kernel_.lanes; ++lane) {
        if (blocks_left_[lane] == 0) position_[lane] = readable;
      }
      kernel_.compress(state_, position_, step_blocks);
      for (std::size_t lane = 0; lane < kernel_.lanes; ++lane) {
        if (blocks_left_[lane] == 0) continue;
        blocks_left_[lane] -= step_blocks;
        position_[lane] += step_blocks * kMd5BlockBytes;
        if (blocks_left_[lane] == 0) EndPart(lane);
      }
    }
  }

 private:
  // Messages up to this size are copied, so that they and their padding are one part.
  static constexpr std::size_t kCopiedBlocks = 8;

  void StartNext(std::size_t lane) {
    if (next_ == order_.size()) {
      blocks_left_[lane] = 0;
      return;
    }
    ++active_;
    const std::uint32_t message = order_[next_++];
    message_[lane] = message;
    constexpr std::uint32_t kStart[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    for (std::size_t word = 0; word < 4; ++word) {
      state_[word * kernel_.lanes + lane] = kStart[word];
    }
    const std::string_view bytes = messages_[message];
    if (PaddedBlocks(bytes.size()) <= kCopiedBlocks) {
      StartTail(lane, 0);
    } else {
      has_tail_[lane] = true;
      position_[lane] = reinterpret_cast<const std::uint8_t*>(bytes.data());
      blocks_left_[lane] = bytes.size() / kMd5BlockBytes;
    }
  }

  // What is left of the message from `offset`, and the padding, in the lane's own buffer.
  void StartTail(std::size_t lane, std::size_t offset) {
    const std::string_view bytes = messages_[message_[lane]];
    const std::size_t rest = bytes.size() - offset;
    const std::size_t blocks = PaddedBlocks(rest);
    std::uint8_t* const tail = tail_[lane];
    if (rest > 0) std::memcpy(tail, bytes.data() + offset, rest);
    std::memset(tail + rest, 0, blocks * kMd5BlockBytes - rest);
    tail[rest] = 0x80;
    const std::uint64_t length_bits = std::uint64_t{bytes.size()} * 8;
    std::memcpy(tail + blocks * kMd5BlockBytes - 8, &length_bits, 8);  // little-endian, as here
    has_tail_[lane] = false;
    position_[lane] = tail;
    blocks_left_[lane] = blocks;
  }

  void EndPart(std::size_t lane) {
    const std::uint32_t message = message_[lane];
    if (has_tail_[lane]) {
      StartTail(lane, messages_[message].size() / kMd5BlockBytes * kMd5BlockBytes);
      return;
    }
    for (std::size_t word = 0; word < 4; ++word) {
      std::memcpy(digests_[message].data() + word * 4, &state_[word * kernel_.lanes + lane], 4);
    }
    --active_;
    StartNext(lane);
  }

  const Md5Kernel& kernel_;
  std::span<const std::string_view> messages_;
  std::span<const std::uint32_t> order_;
  std::span<Md5Digest> digests_;
  std::size_t next_ = 0;
  std::size_t active_ = 0;
  alignas(64) std::uint32_t state_[4 * kMaxMd5Lanes];
  const std::uint8_t* position_[kMaxMd5Lanes];
  std::size_t blocks_left_[kMaxMd5Lanes];
  std::uint32_t message_[kMaxMd5Lanes];
  bool has_tail_[kMaxMd5Lanes];
  alignas(64) std::uint8_t tail_[kMaxMd5Lanes][kCopiedBlocks * kMd5BlockBytes];
};

// Indexes of the messages, longest first (in blocks): lanes then end at about the same time.
std::vector<std::uint32_t> LongestFirst(std::span<const std::string_view> messages) {
  constexpr std::size_t kBuckets = 64;  // one per number of blocks; the last holds all longer ones
  const auto bucket_of = [=](std::string_view message) {
    return kBuckets - std::min(PaddedBlocks(message.size()), kBuckets);
  };
  std::array<std::uint32_t, kBuckets + 1> bucket_end{};
  for (const std::string_view message : messages) ++bucket_end[bucket_of(message) + 1];
  std::partial_sum(bucket_end.begin(), bucket_end.end(), bucket_end.begin());
  const std::uint32_t long_count = bucket_end[1];
  std::vector<std::uint32_t> order(messages.size());
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    order[bucket_end[bucket_of(messages[i])]++] = i;
  }
  std::sort(order.begin(), order.begin() + long_count, [&](std::uint32_t x, std::uint32_t y) {
    return messages[x].size() > messages[y].size();
  });
  return order;
}

// How many of the longest messages are better done by OpenSSL while no lane is running. With
// OpenSSL's speed as 1, k messages outside the lanes cost their bytes; the rest costs what all
// lanes together need, or what the longest of them needs in its one lane, whichever is more.
std::size_t CountForOpenSsl(const Md5Kernel& kernel, std::span<const std::string_view> messages,
                            std::span<const std::uint32_t> order) {
  std::uint64_t rest_blocks = 0;
  for (const std::string_view message : messages) rest_blocks += PaddedBlocks(message.size());
  std::uint64_t best_cost = UINT64_MAX, outside_blocks = 0;
  std::size_t best_count = 0;
  for (std::size_t count = 0; count < order.size(); ++count) {
    const std::uint64_t longest = PaddedBlocks(messages[order[count]].size());
    const std::uint64_t lanes_cost = std::max(rest_blocks, longest * kernel.lanes);
    const std::uint64_t cost = outside_blocks * kernel.speed_up + lanes_cost;
    if (cost < best_cost) {
      best_cost = cost;
      best_count = count;
    }
    if (longest * kernel.lanes <= rest_blocks) break;  // more outside can only cost more
    outside_blocks += longest;
    rest_blocks -= longest;
  }
  // OpenSSL for everything, as for one message alone.
  return outside_blocks * kernel.speed_up < best_cost && rest_blocks == 0 ? order.size()
                                                                          : best_count;
}

}  // namespace

void Md5ManyWith(const Md5Kernel& kernel, std::span<const std::string_view> messages,
                 std::span<Md5Digest> digests) {
  const std::vector<std::uint32_t> order = LongestFirst(messages);
  const std::size_t outside = CountForOpenSsl(kernel, messages, order);
  for (std::size_t i = 0; i < outside; ++i) digests[order[i]] = Md5(messages[order[i]]);
  LaneRun(kernel, messages, std::span(order).subspan(outside), digests).Run();
}

}  // namespace tlparse
