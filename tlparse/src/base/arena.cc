#include "base/arena.h"

#include <algorithm>

namespace tlparse {

namespace {
constexpr std::size_t kArenaBlockBytes = 1 << 20;
// Readable bytes behind every block: simdjson parses text in place and reads past its end.
constexpr std::size_t kSlackBytes = 128;
}  // namespace

void Arena::Grow(std::size_t size) {
  const std::size_t block_size = std::max(size, kArenaBlockBytes);
  // Not make_unique: the bytes are about to be written, zeroing them first would touch them twice.
  blocks_.push_back({std::unique_ptr<char[]>(new char[block_size + kSlackBytes]), block_size});
  allocated_bytes_ += block_size;
  next_ = blocks_.back().bytes.get();
  left_ = block_size;
}

void Arena::Clear() {
  // One ordinary block stays; large and further ones go back to the system.
  std::erase_if(blocks_, [](const Block& block) { return block.size > kArenaBlockBytes; });
  if (blocks_.size() > 1) blocks_.resize(1);
  allocated_bytes_ = blocks_.empty() ? 0 : blocks_.front().size;
  next_ = blocks_.empty() ? nullptr : blocks_.front().bytes.get();
  left_ = allocated_bytes_;
}

}  // namespace tlparse
