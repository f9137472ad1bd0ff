// ArtifactFile: an artifact that stays in a file, for those that are too large for a string.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

// An open file. It can be read as long as the object lives, even if the cache evicts the entry.
// Thread-safe.
class ArtifactFile {
 public:
  static Status Open(const std::string& path, std::shared_ptr<const ArtifactFile>& file);
  // Takes the descriptor, which is at least readable.
  static Status FromDescriptor(int fd, std::shared_ptr<const ArtifactFile>& file);
  ~ArtifactFile();
  ArtifactFile(const ArtifactFile&) = delete;
  ArtifactFile& operator=(const ArtifactFile&) = delete;

  // A path for this process, for as long as the object lives.
  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  int descriptor() const { return fd_; }

 private:
  ArtifactFile(int fd, uint64_t size_bytes);

  int fd_;
  uint64_t size_bytes_;
  std::string path_;  // in /proc/self/fd
};

}  // namespace LIBTRACE_EXPORT
