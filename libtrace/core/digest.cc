// The low-level functions: the EVP ones use a library context that OpenSSL frees at exit, while
// other threads may still be emitting records.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "core/digest.h"

#include <openssl/md5.h>
#include <openssl/sha.h>

#include <new>

namespace libtrace::detail {
namespace {

std::string Hex(const unsigned char* bytes, size_t size) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text(size * 2, '0');
  for (size_t i = 0; i < size; ++i) {
    text[2 * i] = kHex[bytes[i] >> 4];
    text[2 * i + 1] = kHex[bytes[i] & 15];
  }
  return text;
}

}  // namespace

std::string Md5Hex(std::string_view text) {
  MD5_CTX context;
  unsigned char digest[MD5_DIGEST_LENGTH];
  MD5_Init(&context);
  MD5_Update(&context, text.data(), text.size());
  MD5_Final(digest, &context);
  return Hex(digest, sizeof digest);
}

Sha256 Sha256Of(std::string_view text) {
  SHA256_CTX context;
  Sha256 digest;
  SHA256_Init(&context);
  SHA256_Update(&context, text.data(), text.size());
  SHA256_Final(digest.data(), &context);
  return digest;
}

std::string Hex(const Sha256& digest) { return Hex(digest.data(), digest.size()); }
std::string Sha256Hex(std::string_view text) { return Hex(Sha256Of(text)); }

Sha256 HmacSha256(std::string_view key, std::string_view text) {
  constexpr size_t kBlockSize = 64;
  const Sha256 digest_of_key = Sha256Of(key);
  if (key.size() > kBlockSize)
    key = {reinterpret_cast<const char*>(digest_of_key.data()), digest_of_key.size()};
  std::string inner(kBlockSize, '\x36'), outer(kBlockSize, '\x5C');
  for (size_t i = 0; i < key.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ key[i]);
    outer[i] = static_cast<char>(outer[i] ^ key[i]);
  }
  const Sha256 digest = Sha256Of(inner.append(text));
  return Sha256Of(outer.append(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

Sha256Stream::Sha256Stream() {
  static_assert(sizeof(SHA256_CTX) <= sizeof state_ && alignof(SHA256_CTX) <= 8);
  SHA256_Init(new (state_) SHA256_CTX);
}
void Sha256Stream::Add(std::string_view piece) {
  SHA256_Update(reinterpret_cast<SHA256_CTX*>(state_), piece.data(), piece.size());
}
Sha256 Sha256Stream::Finish() {
  Sha256 digest;
  SHA256_Final(digest.data(), reinterpret_cast<SHA256_CTX*>(state_));
  return digest;
}

std::string Base32Key(const Sha256& digest) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string text;
  text.reserve(52);
  unsigned bits = 0;
  int bit_count = 0;
  for (unsigned char byte : digest) {
    bits = bits << 8 | byte;
    bit_count += 8;
    while (bit_count >= 5) {
      bit_count -= 5;
      text += kAlphabet[bits >> bit_count & 31];
    }
  }
  return text;  // the 52nd character would hold the last bit alone
}

}  // namespace libtrace::detail
