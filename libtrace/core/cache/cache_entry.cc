#include "core/cache/byte_coder.h"
#include "core/digest.h"
#include "libtrace/cache/compile_cache.h"

namespace libtrace {
namespace {

constexpr std::string_view kMagic = "libtrace cache entry 1\n";
constexpr size_t kHashSize = 64;  // hex SHA-256 of what follows it

}  // namespace

std::string EncodeCacheEntry(const CacheEntry& entry) {
  std::string body;
  body.reserve(entry.artifact.size() + entry.guard.size() + 256);
  detail::PutSized(entry.artifact, body);
  detail::PutSized(entry.guard, body);
  detail::PutU64(static_cast<uint64_t>(entry.time_taken_ns), body);
  detail::PutU64(static_cast<uint64_t>(entry.backward_time_taken_ns), body);
  detail::PutU64(entry.properties.size(), body);
  for (const auto& [name, value] : entry.properties) {
    detail::PutSized(name, body);
    detail::PutSized(value, body);
  }
  std::string bytes(kMagic);
  bytes.append(detail::Sha256Hex(body)).append("\n").append(body);
  return bytes;
}

Status DecodeCacheEntry(std::string_view bytes, CacheEntry& entry) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kHashSize + 1 ||
      bytes[kMagic.size() + kHashSize] != '\n') {
    return Status::Error("not a cache entry of this version");
  }
  const std::string_view hash = bytes.substr(kMagic.size(), kHashSize);
  const std::string_view body = bytes.substr(kMagic.size() + kHashSize + 1);
  if (detail::Sha256Hex(body) != hash)
    return Status::Error("cache entry is damaged: wrong checksum");
  detail::ByteReader reader(body);
  CacheEntry decoded;
  decoded.artifact = reader.Sized();
  decoded.guard = reader.Sized();
  decoded.time_taken_ns = static_cast<int64_t>(reader.U64());
  decoded.backward_time_taken_ns = static_cast<int64_t>(reader.U64());
  const uint64_t count = reader.U64();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    std::string name(reader.Sized());
    decoded.properties.emplace_back(std::move(name), reader.Sized());
  }
  if (!reader.ok() || !reader.at_end()) return Status::Error("cache entry is damaged: wrong size");
  entry = std::move(decoded);
  return {};
}

}  // namespace libtrace
