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
  if (!file_.is_open() && size > kMostInMemory) return MoveToFile(size);
  // Without its blocks on the disk, a write to a page of a full disk would end the program.
  if (const int error =
          !file_.is_open() ? 0 : ::posix_fallocate(file_.get(), 0, static_cast<off_t>(size));
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
  ASSIGN_OR_RETURN(FileDescriptor file, OpenNamelessFile(directory_));
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size)); error != 0)
    return tl::unexpected<Error>(NoMemory(directory_, size, error));
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return tl::unexpected<Error>(NoMemory(directory_, size, errno));
  if (size_ > 0) std::memcpy(mapped, data_, size_);
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = static_cast<char*>(mapped);
  size_ = size;
  file_ = std::move(file);
  return {};
}

void SpillingBytes::Free() {
  if (data_ != nullptr) ::munmap(data_, size_);
  file_.Close();
  data_ = nullptr;
  size_ = 0;
}

}  // namespace tlparse
