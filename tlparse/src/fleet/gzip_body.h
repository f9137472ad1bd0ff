// A request's body as gzip, compressed while it grows. A body that is cut off ends in the middle of
// a gzip stream, which the server refuses; of a plain one it would keep what came.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

class GzipBody {
 public:
  GzipBody();
  ~GzipBody();
  GzipBody(const GzipBody&) = delete;
  GzipBody& operator=(const GzipBody&) = delete;

  void Append(std::string_view plain);
  // What was appended since the last Take, as a complete gzip stream.
  std::string Take();
  std::uint64_t plain_bytes() const { return plain_bytes_; }
  // Compressed so far; a little is still inside.
  std::size_t size() const { return out_.size(); }

 private:
  struct Stream;
  void Run(std::string_view plain, bool is_last);

  std::unique_ptr<Stream> stream_;
  std::string out_;
  std::uint64_t plain_bytes_ = 0;
};

}  // namespace tlparse
