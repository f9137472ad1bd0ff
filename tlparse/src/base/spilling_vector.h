// A vector of millions of small structs that the kernel can write out and drop.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "base/nameless_file.h"
#include "base/result.h"

namespace tlparse {

// The bytes of a SpillingVector. From kMostInMemory on they are a nameless file that is mapped:
// the kernel keeps their pages in memory while there is enough, and else writes them to the disk.
class SpillingBytes {
 public:
  // `directory`: where the file is made.
  explicit SpillingBytes(std::string directory) : directory_(std::move(directory)) {}
  SpillingBytes(const SpillingBytes&) = delete;
  SpillingBytes& operator=(const SpillingBytes&) = delete;
  ~SpillingBytes() { Free(); }

  static constexpr std::size_t kMostInMemory = std::size_t{8} << 20;

  // At least so many bytes, those that exist unchanged. kIo: the disk is full.
  Result<void> Grow(std::size_t size);
  void Free();
  char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Result<void> MoveToFile(std::size_t size);

  std::string directory_;
  char* data_ = nullptr;
  std::size_t size_ = 0;
  FileDescriptor file_;  // not open: the bytes are in memory
};

// Elements are moved as bytes. What points to them is invalid after the next Push or Reserve.
template <typename T>
requires std::is_trivially_copyable_v<T>
class SpillingVector {
 public:
  explicit SpillingVector(const std::string& directory) : bytes_(directory) {}

  Result<void> Reserve(std::size_t count) {
    return count <= Capacity() ? Result<void>() : bytes_.Grow(count * sizeof(T));
  }
  Result<void> Push(const T& value) {
    if (size_ == Capacity())
      RETURN_IF_ERROR(Reserve(std::max<std::size_t>(4096 / sizeof(T) + 1, 2 * size_)));
    new (end()) T(value);
    ++size_;
    return {};
  }
  void Free() {
    bytes_.Free();
    size_ = 0;
  }

  T* begin() { return reinterpret_cast<T*>(bytes_.data()); }
  T* end() { return begin() + size_; }
  const T* begin() const { return reinterpret_cast<const T*>(bytes_.data()); }
  const T* end() const { return begin() + size_; }
  T& operator[](std::size_t index) { return begin()[index]; }
  const T& operator[](std::size_t index) const { return begin()[index]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::size_t Capacity() const { return bytes_.size() / sizeof(T); }

  SpillingBytes bytes_;
  std::size_t size_ = 0;
};

}  // namespace tlparse
