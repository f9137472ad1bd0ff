#include "base/md5.h"

#include <openssl/evp.h>
#include <openssl/provider.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/ascii.h"
#include "base/md5_lanes.h"

namespace tlparse {
namespace {

[[noreturn]] void DieWithoutMd5() {
  std::fputs("tlparse: this OpenSSL cannot compute MD5; install its default provider\n", stderr);
  std::abort();
}

// Fetched once: EVP_md5() is looked up again at every use, which takes longer than the MD5 of a
// short payload. Never freed, as threads may still use it when the process ends. A library context
// of our own, because the system's configuration may forbid MD5 (FIPS); here it only guards against
// accident.
const EVP_MD* Md5Algorithm() {
  static const EVP_MD* const algorithm = [] {
    OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
    if (library == nullptr || OSSL_PROVIDER_load(library, "default") == nullptr) DieWithoutMd5();
    return EVP_MD_fetch(library, "MD5", nullptr);
  }();
  return algorithm;
}

}  // namespace

std::string ToHex(const Md5Digest& digest) {
  std::string text(32, '0');
  for (std::size_t i = 0; i < digest.size(); ++i) {
    text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

std::optional<Md5Digest> ParseMd5Hex(std::string_view text) {
  Md5Digest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = HexDigit(text[2 * i]), low = HexDigit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

Md5Digest Md5(std::string_view bytes) {
  // A new one for each call costs 31 ns (OpenSSL 3.0).
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  Md5Digest digest;
  if (EVP_DigestInit_ex2(context.get(), Md5Algorithm(), nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1) {
    DieWithoutMd5();
  }
  return digest;
}

void Md5Stream::FreeContext::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

Md5Stream::Md5Stream() : context_(EVP_MD_CTX_new()) {
  if (EVP_DigestInit_ex2(context_.get(), Md5Algorithm(), nullptr) != 1) DieWithoutMd5();
}

void Md5Stream::Add(std::string_view piece) {
  if (EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) != 1) DieWithoutMd5();
}

Md5Digest Md5Stream::Digest() const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> copy(EVP_MD_CTX_new(),
                                                                     &EVP_MD_CTX_free);
  Md5Digest digest;
  if (EVP_MD_CTX_copy_ex(copy.get(), context_.get()) != 1 ||
      EVP_DigestFinal_ex(copy.get(), digest.data(), nullptr) != 1) {
    DieWithoutMd5();
  }
  return digest;
}

void Md5Many(std::span<const std::string_view> messages, std::span<Md5Digest> digests) {
  static const std::span<const Md5Kernel> kernels = SupportedMd5Kernels();
  if (!kernels.empty() && messages.size() > 1) {
    Md5ManyWith(kernels.front(), messages, digests);
    return;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) digests[i] = Md5(messages[i]);
}

}  // namespace tlparse
