// A growing buffer that does not zero new bytes and has readable slack after them (simdjson reads
// past the end).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace tlparse {

class ByteBuffer {
 public:
  static constexpr std::size_t kSlack = 128;

  // At least `capacity` bytes; keeps the content. Throws std::bad_alloc.
  void Reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    // realloc moves large blocks by remapping pages, not by copying.
    char* grown = static_cast<char*>(std::realloc(bytes_.get(), capacity + kSlack));
    if (grown == nullptr) throw std::bad_alloc();
    (void)bytes_.release();
    bytes_.reset(grown);
    capacity_ = capacity;
  }
  void Append(std::string_view text) {
    Reserve(size_ + text.size());
    if (!text.empty()) std::memcpy(bytes_.get() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void ZeroSlack() {
    if (bytes_ != nullptr) std::memset(bytes_.get() + size_, 0, kSlack);
  }
  void Release() {
    bytes_.reset();
    capacity_ = size_ = 0;
  }
  char* data() { return bytes_.get(); }
  const char* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }
  void set_size(std::size_t size) { size_ = size; }
  std::size_t capacity() const { return capacity_; }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<char, Free> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace tlparse
