// Numbers and sized strings in bytes, little endian: cache entries and bundles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libtrace/export.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

inline void PutU64(uint64_t value, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xFF);
}

inline void PutSized(std::string_view bytes, std::string& out) {
  PutU64(bytes.size(), out);
  out.append(bytes);
}

// Reads what Put* wrote; once something is missing, ok() is false and everything reads as empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint64_t U64() {
    if (rest_.size() < 8) return Fail(), 0;
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(8);
    return value;
  }

  // A view into the bytes given to the constructor.
  std::string_view Sized() {
    const uint64_t size = U64();
    if (size > rest_.size()) return Fail(), std::string_view();
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
