// MD5 of payloads, SHA-256 of cache components and entries, by OpenSSL.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "libtrace/export.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

// Lower-case hex.
std::string Md5Hex(std::string_view text);

using Sha256 = std::array<unsigned char, 32>;
Sha256 Sha256Of(std::string_view text);
std::string Sha256Hex(std::string_view text);
std::string Hex(const Sha256& digest);
// RFC 2104 with SHA-256.
Sha256 HmacSha256(std::string_view key, std::string_view text);

// SHA-256 of bytes that are added in pieces.
class Sha256Stream {
 public:
  Sha256Stream();
  void Add(std::string_view piece);
  Sha256 Finish();  // once

 private:
  alignas(8) unsigned char state_[128];  // OpenSSL's SHA256_CTX
};

// Lower-case unpadded RFC 4648 base32 without the last of the 52 characters, as PyTorch's keys.
std::string Base32Key(const Sha256& digest);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
