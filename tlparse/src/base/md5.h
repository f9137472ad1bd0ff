// MD5 of payloads. PyTorch writes the lower-case hex MD5 of every payload into its envelope
// (`has_payload`, torch/_logging/_internal.py); it is the only check of a log's integrity.
#pragma once

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tlparse {

using Md5Digest = std::array<std::uint8_t, 16>;

// 32 lower-case hex characters.
std::string ToHex(const Md5Digest& digest);

// The digest that exactly 32 hex digits (lower or upper case) spell; nothing for any other text.
std::optional<Md5Digest> ParseMd5Hex(std::string_view text);

// MD5 of one message. Thread-safe.
// Aborts if OpenSSL refuses to compute MD5 (a FIPS-only configuration without a default provider
// is refused by our own library context, so this is a broken installation or no memory).
Md5Digest Md5(std::string_view bytes);

// MD5 of a message that is added in pieces. Aborts as Md5 does.
class Md5Stream {
 public:
  Md5Stream();
  void Add(std::string_view piece);
  Md5Digest Digest() const;  // of what has been added so far; more may follow

 private:
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const;
  };
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

// digests[i] = MD5 of messages[i]; both spans have the same size. Thread-safe.
// Short and medium messages are computed side by side in vector lanes (16 with AVX-512, 8 with
// AVX2, 4 with SSE2, chosen at run time; other processors use OpenSSL), several times faster than
// one by one: give it as many messages at once as there are. Order and lengths do not matter. The
// messages may lie anywhere; nothing beyond their bytes is read.
void Md5Many(std::span<const std::string_view> messages, std::span<Md5Digest> digests);

}  // namespace tlparse
