// A file's bytes as a hash that tells whether it has changed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct XXH3_state_s;

namespace tlparse {

// XXH3-128 over bytes that come piece by piece, as 32 hex digits.
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

// Of the decompressed bytes of `path`. A damaged archive is hashed as far as it can be decoded.
// kNotFound or kIo if it cannot be opened.
Result<std::string> HashFile(const std::string& path);

}  // namespace tlparse
