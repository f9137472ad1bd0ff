// A gzip stream that is compressed while it grows. As a request's body: the server refuses one that
// is cut off, because its gzip stream is incomplete; of a plain body it would insert the part that
// arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tlparse {

class GzipBody {
 public:
  GzipBody();
  ~GzipBody();
  GzipBody(const GzipBody&) = delete;
  GzipBody& operator=(const GzipBody&) = delete;

  void Append(std::string_view plain);
  // The end of a gzip stream: all of it, or what TakePart left of it. The next Append begins another.
  std::string Take();
  // What is compressed so far of a stream that has not ended.
  std::string TakePart() { return std::exchange(out_, {}); }
  std::uint64_t plain_bytes() const { return plain_bytes_; }
  // Compressed size so far, without a small part that is still buffered.
  std::size_t size() const { return out_.size(); }

 private:
  struct Stream;
  void Run(std::string_view plain, bool is_last);

  std::unique_ptr<Stream> stream_;
  std::string out_;
  std::uint64_t plain_bytes_ = 0;
};

}  // namespace tlparse
