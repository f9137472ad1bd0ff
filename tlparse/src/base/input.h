// Sequential sources of bytes: a file or standard input, plain or compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// Used by one thread at a time; compressed_bytes_read() may be called from another one.
class InputStream {
 public:
  virtual ~InputStream() = default;

  // Fills up to `capacity` bytes and returns their number; 0 only at the end (or capacity 0).
  // Fewer than `capacity` bytes do not mean that the end is near.
  // kDamagedInput: compressed data is cut or damaged; everything decodable was delivered by earlier
  // calls. kIo: reading failed. After an error every call returns the same error.
  virtual Result<std::size_t> Read(char* buffer, std::size_t capacity) = 0;

  // Bytes taken from the file so far, for progress: compare with total_bytes().
  virtual std::int64_t compressed_bytes_read() const = 0;
  // Size of the file on disk (as it was when it was opened); -1 if unknown (pipes).
  virtual std::int64_t total_bytes() const = 0;
  // For OpenGrowingInput: from now on the end of the file is the end of the input.
  virtual void EndGrowth() {}

  // For OpenGrowingInput: the file has another name.
  virtual void SetPath(const std::string& /*path*/) {}

  // "none", "gzip" or "zstd".
  virtual std::string_view compression() const = 0;
};

// Opens `path`; "-" is standard input (left open afterwards). gzip and zstd are recognised by
// their first bytes, not by name; gzip members and zstd frames may follow one another.
// kNotFound or kIo, with the system's message; a directory is kIo.
Result<std::unique_ptr<InputStream>> OpenInput(const std::string& path);

// The same for a file that may still grow: at its current end Read returns 0, and the next call
// continues there. The file is open only while it is read, and no large buffer is held between the
// reads of a plain file. If another file has replaced it under its name, nothing more is read.
// NUL bytes at the current end of a plain file are not returned yet: a network file system may show
// a new size before the bytes. nullptr: the file cannot be opened, or lacks the first four bytes,
// which show whether it is compressed.
Result<std::unique_ptr<InputStream>> OpenGrowingInput(const std::string& path);

}  // namespace tlparse
