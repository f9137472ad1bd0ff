#include "base/spilling_vector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tlparse {

namespace {

Error NoMemory(const std::string& directory, std::size_t size, int error) {
  return Error{ErrorCode::kIo, fmt::format("{}: no room for {} bytes of a temporary file: {}",
                                           directory, size, std::strerror(error))};
}

}  // namespace

Result<void> SpillingBytes::Grow(std::size_t size) {
  if (size <= size_) return {};
  if (descriptor_ < 0 && size > kMostInMemory) return MoveToFile(size);
  // Without its blocks on the disk, a write to a page of a full disk would end the program.
  if (const int error =
          descriptor_ < 0 ? 0 : ::posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
      error != 0)
    return tl::unexpected<Error>(NoMemory(directory_, size, error));
  void* const grown = data_ == nullptr ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                       : ::mremap(data_, size_, size, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) return tl::unexpected<Error>(NoMemory(directory_, size, errno));
  data_ = static_cast<char*>(grown);
  size_ = size;
  return {};
}

Result<void> SpillingBytes::MoveToFile(std::size_t size) {
  ASSIGN_OR_RETURN(const int descriptor, OpenNamelessFile(directory_));
  if (const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size)); error != 0) {
    ::close(descriptor);
    return tl::unexpected<Error>(NoMemory(directory_, size, error));
  }
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    ::close(descriptor);
    return tl::unexpected<Error>(NoMemory(directory_, size, errno));
  }
  if (size_ > 0) std::memcpy(mapped, data_, size_);
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = static_cast<char*>(mapped);
  size_ = size;
  descriptor_ = descriptor;
  return {};
}

void SpillingBytes::Free() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
  data_ = nullptr;
  size_ = 0;
  descriptor_ = -1;
}

}  // namespace tlparse
