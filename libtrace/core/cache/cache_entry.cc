#include "core/cache/atomic_file.h"
#include "core/cache/byte_coder.h"
#include "core/cache/entry_head.h"
#include "core/errno_scope.h"

namespace libtrace {
namespace {

// The version is part of the content hash: entries of two versions lie side by side.
constexpr std::string_view kHeadMagic = "libtrace cache head 3\n";
constexpr std::string_view kHeadMagicOfAnyVersion = "libtrace cache head ";
constexpr std::string_view kEntryMagic = "libtrace cache entry 2\n";
constexpr size_t kHashSize = 64;  // hex SHA-256 of what follows it

using Pairs = std::vector<std::pair<std::string, std::string>>;

void PutPairs(const Pairs& pairs, std::string& out) {
  detail::PutU64(pairs.size(), out);
  for (const auto& [name, value] : pairs) {
    detail::PutSized(name, out);
    detail::PutSized(value, out);
  }
}

void ReadPairs(detail::ByteReader& reader, Pairs& pairs) {
  const uint64_t count = reader.U64();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    std::string name(reader.Sized());
    pairs.emplace_back(std::move(name), reader.Sized());
  }
}

std::string_view BytesOf(const detail::Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string ContentHash(std::string_view identity) {
  return detail::Base32Key(detail::Sha256Of(std::string(kHeadMagic).append(identity)));
}

}  // namespace

namespace detail {

StoredEntry EncodeHead(const CacheEntry& entry, uint64_t artifact_size_bytes,
                       const Sha256& artifact_digest) {
  std::string identity;
  PutSized(entry.guard, identity);
  PutPairs(entry.properties, identity);
  PutU64(artifact_size_bytes, identity);
  PutSized(BytesOf(artifact_digest), identity);
  std::string body;
  PutSized(identity, body);
  PutU64(static_cast<uint64_t>(entry.time_taken_ns), body);
  PutU64(static_cast<uint64_t>(entry.backward_time_taken_ns), body);
  PutPairs(entry.notes, body);
  std::string head(kHeadMagic);
  head.append(Sha256Hex(body)).append("\n").append(body);
  return {ContentHash(identity), std::move(head), artifact_size_bytes};
}

bool IsOfAnotherVersion(const StoredEntry& stored) {
  const std::string_view head = stored.head;
  return head.starts_with(kHeadMagicOfAnyVersion) && !head.starts_with(kHeadMagic);
}

Status DecodeHead(const StoredEntry& stored, EntryHead& head) {
  const std::string_view bytes = stored.head;
  if (!bytes.starts_with(kHeadMagic) || bytes.size() < kHeadMagic.size() + kHashSize + 1 ||
      bytes[kHeadMagic.size() + kHashSize] != '\n') {
    return Status::Error("not a cache entry of this version");
  }
  const std::string_view hash = bytes.substr(kHeadMagic.size(), kHashSize);
  const std::string_view body = bytes.substr(kHeadMagic.size() + kHashSize + 1);
  if (Sha256Hex(body) != hash) return Status::Error("cache entry is damaged: wrong checksum");
  ByteReader reader(body);
  const std::string_view identity_bytes = reader.Sized();
  if (ContentHash(identity_bytes) != stored.content_hash)
    return Status::Error("cache entry is damaged: it has another entry's name");
  ByteReader identity(identity_bytes);
  EntryHead decoded;
  decoded.entry.guard = identity.Sized();
  ReadPairs(identity, decoded.entry.properties);
  decoded.artifact_size_bytes = identity.U64();
  const std::string_view digest = identity.Sized();
  decoded.entry.time_taken_ns = static_cast<int64_t>(reader.U64());
  decoded.entry.backward_time_taken_ns = static_cast<int64_t>(reader.U64());
  ReadPairs(reader, decoded.entry.notes);
  if (!identity.ok() || !identity.at_end() || !reader.ok() || !reader.at_end() ||
      digest.size() != decoded.artifact_digest.size() ||
      decoded.artifact_size_bytes != stored.artifact_size_bytes) {
    return Status::Error("cache entry is damaged: wrong size");
  }
  std::copy(digest.begin(), digest.end(), decoded.artifact_digest.begin());
  head = std::move(decoded);
  return {};
}

Status ReadArtifact(const CacheEntry& entry, ChunkSink sink) {
  if (entry.artifact_file) return ReadChunks(entry.artifact_file->descriptor(), sink);
  const std::string_view bytes = entry.artifact;
  for (size_t at = 0; at < bytes.size(); at += kArtifactChunkBytes) {
    if (!sink(bytes.substr(at, kArtifactChunkBytes)))
      return Status::Error("the transfer of an artifact was stopped");
  }
  return {};
}

Status EncodeHeadOf(const CacheEntry& entry, StoredEntry& stored) {
  Sha256Stream digest;
  uint64_t size_bytes = 0;
  Status status = ReadArtifact(entry, [&](std::string_view chunk) {
    digest.Add(chunk);
    size_bytes += chunk.size();
    return true;
  });
  if (status.ok()) stored = EncodeHead(entry, size_bytes, digest.Finish());
  return status;
}

}  // namespace detail

std::string EncodeCacheEntry(const CacheEntry& entry) {
  const detail::ErrnoScope keeps_errno;
  StoredEntry stored;
  if (!detail::EncodeHeadOf(entry, stored).ok()) return {};
  std::string bytes(kEntryMagic);
  detail::PutSized(stored.content_hash, bytes);
  detail::PutSized(stored.head, bytes);
  detail::PutU64(stored.artifact_size_bytes, bytes);
  const Status status = detail::ReadArtifact(entry, [&](std::string_view chunk) {
    bytes.append(chunk);
    return true;
  });
  return status.ok() ? bytes : std::string();
}

Status DecodeCacheEntry(std::string_view bytes, CacheEntry& entry) {
  const detail::ErrnoScope keeps_errno;
  if (!bytes.starts_with(kEntryMagic)) return Status::Error("not a cache entry of this version");
  detail::ByteReader reader(bytes.substr(kEntryMagic.size()));
  StoredEntry stored;
  stored.content_hash = reader.Sized();
  stored.head = reader.Sized();
  stored.artifact_size_bytes = reader.U64();
  const std::string_view artifact = reader.rest();
  if (!reader.ok() || artifact.size() != stored.artifact_size_bytes)
    return Status::Error("cache entry is damaged: wrong size");
  detail::EntryHead head;
  if (Status status = detail::DecodeHead(stored, head); !status.ok()) return status;
  if (detail::Sha256Of(artifact) != head.artifact_digest)
    return Status::Error("cache entry is damaged: wrong checksum");
  head.entry.artifact = artifact;
  entry = std::move(head.entry);
  return {};
}

}  // namespace libtrace
