// MD5 of payloads and SHA-256 of cache components, by OpenSSL.
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

// Lower-case unpadded RFC 4648 base32 without the last of the 52 characters, as PyTorch's keys.
std::string Base32Key(const Sha256& digest);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
