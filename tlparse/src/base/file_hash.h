// A hash of a file's bytes, by which a change of the file is recognised.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct XXH3_state_s;

namespace tlparse {

// XXH3-128 over bytes that are added piece by piece, as 32 hex digits.
class ByteHash {
 public:
  ByteHash();
  ~ByteHash();
  ByteHash(const ByteHash&) = delete;
  ByteHash& operator=(const ByteHash&) = delete;
  void Add(std::string_view bytes);
  std::string Hex() const;  // of all bytes so far

 private:
  XXH3_state_s* state_;
};

// Hash of the decompressed bytes of `path`, at most the first `most_bytes`. A damaged archive is hashed as far as it is decodable.
// kNotFound or kIo if it cannot be opened.
Result<std::string> HashFile(const std::string& path, std::int64_t most_bytes = INT64_MAX);

}  // namespace tlparse
