#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace tlparse {

// Memory that is freed all at once. Views into it live as long as the arena.
class Arena {
 public:
  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {"", 0};
    char* to = Allocate(text.size());
    std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }
  char* Allocate(std::size_t size) {
    if (size > left_) Grow(size);
    char* result = next_;
    next_ += size;
    left_ -= size;
    return result;
  }
  // Returns the last `size` bytes of the latest Allocate.
  void GiveBack(std::size_t size) {
    next_ -= size;
    left_ += size;
  }
  // Frees everything but one ordinary block, so that memory is reused instead of growing.
  void Clear();
  std::size_t allocated_bytes() const { return allocated_bytes_; }

 private:
  void Grow(std::size_t size);
  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };
  std::vector<Block> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t allocated_bytes_ = 0;
};

}  // namespace tlparse
