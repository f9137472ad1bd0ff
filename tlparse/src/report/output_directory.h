// The output directory: it has our marker, and all files are created inside it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "log/output_marker.h"

namespace tlparse {

// An open directory below the root. All names are single components: one that is empty, ".", ".."
// or holds '/' or NUL is refused (kInternal), and symbolic links are never followed.
// Functions may be called by several threads at once.
class Directory {
 public:
  Directory() = default;
  Directory(FileDescriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  // The directory `name`, created if it does not exist.
  Result<Directory> Child(std::string_view name) const;
  // A new file. kIo if it cannot be created; kInternal if the name is used (names must be unique).
  Result<FileDescriptor> CreateFile(std::string_view name) const;
  // A hard link to a finished file: `from` relative to `root`. False if the file system refuses.
  bool Link(const Directory& root, const std::string& from, const std::string& name) const;

  // For messages.
  const std::string& path() const { return path_; }

 private:
  FileDescriptor descriptor_;
  std::string path_;
};

// Creates the directory `path` (parents too) and puts our marker into it. If it exists already:
// without `overwrite` kRefused; with it, a directory that has the marker, or is empty, is emptied
// (symbolic links in it are removed, not followed), anything else is kRefused and not
// changed.
Result<Directory> CreateOutputDirectory(const std::string& path, bool overwrite);

// Whether CreateOutputDirectory would accept the path; changes nothing. Call it before long
// work.
Result<void> CheckOutputDirectory(const std::string& path, bool overwrite);

// The directory `path`, which must have the marker (kRefused otherwise).
Result<Directory> OpenOutputDirectory(const std::string& path);

// Writes one file after another through one buffer. Not thread-safe.
class FileWriter {
 public:
  FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Starts a new file; the one before must have been closed.
  Result<void> Open(const Directory& directory, const std::string& name);

  void Append(std::string_view bytes) {
    if (bytes.size() > kCapacity - size_) return AppendSlowly(bytes);
    bytes.copy(buffer_.get() + size_, bytes.size());
    size_ += bytes.size();
  }
  void Append(char byte) {
    if (size_ == kCapacity) Flush();
    buffer_[size_++] = byte;
  }

  // Drops what was appended to this file so far.
  void Restart();
  // The first error since Open, if any (kIo, with the system's message). The descriptor is closed
  // in any case.
  Result<void> Close();

 private:
  static constexpr std::size_t kCapacity = 64 << 10;
  void AppendSlowly(std::string_view bytes);
  void Flush();
  void Write(std::string_view bytes);

  std::unique_ptr<char[]> buffer_;
  std::size_t size_ = 0;
  bool flushed_ = false;
  int error_ = 0;
  FileDescriptor descriptor_;
  std::string path_;
};

}  // namespace tlparse
