#include "core/cache/bundle.h"

#include "core/cache/byte_coder.h"
#include "core/digest.h"

namespace libtrace::detail {
namespace {

constexpr std::string_view kMagic = "libtrace cache bundle 2\n";
constexpr size_t kBundleHashSize = 64;
constexpr size_t kTitleSize = kMagic.size() + kBundleHashSize + 1;
constexpr uint64_t kMaxIndexBytes = uint64_t{4} << 30;

bool Append(BundleBytes bytes, uint64_t offset, uint64_t size_bytes, std::string& out) {
  const Status status = bytes(offset, size_bytes, [&](std::string_view chunk) {
    out.append(chunk);
    return true;
  });
  return status.ok() && out.size() == size_bytes;
}

}  // namespace

std::string BundleTitle(std::string_view hex_digest) {
  return std::string(kMagic).append(hex_digest).append("\n");
}

std::string EncodeBundleIndex(const std::vector<BundleEntry>& entries) {
  std::string index;
  PutU64(entries.size(), index);
  for (const BundleEntry& entry : entries) {
    PutSized(entry.layer, index);
    PutSized(entry.key, index);
    PutSized(entry.stored.content_hash, index);
    PutSized(entry.stored.head, index);
    PutU64(entry.stored.artifact_size_bytes, index);
    PutU64(entry.artifact_offset, index);
  }
  std::string body;
  PutU64(index.size(), body);
  return body.append(index);
}

Status ReadBundleIndex(BundleBytes bytes, std::vector<BundleEntry>& entries,
                       uint64_t& artifacts_offset, uint64_t& size_bytes) {
  std::string title;
  if (!Append(bytes, 0, kTitleSize, title) || !title.starts_with(kMagic) || title.back() != '\n')
    return Status::Error("not a cache bundle of this version");
  Sha256Stream digest;
  size_bytes = kTitleSize;
  Status status = bytes(kTitleSize, UINT64_MAX - kTitleSize, [&](std::string_view chunk) {
    digest.Add(chunk);
    size_bytes += chunk.size();
    return true;
  });
  if (!status.ok()) return status;
  if (Hex(digest.Finish()) != title.substr(kMagic.size(), kBundleHashSize))
    return Status::Error("cache bundle is damaged: wrong checksum");
  std::string size, index;
  const Status wrong_size = Status::Error("cache bundle is damaged: wrong size");
  if (!Append(bytes, kTitleSize, 8, size)) return wrong_size;
  const uint64_t index_size = ByteReader(size).U64();
  if (index_size > kMaxIndexBytes || index_size > size_bytes - kTitleSize - 8 ||
      !Append(bytes, kTitleSize + 8, index_size, index)) {
    return wrong_size;
  }
  artifacts_offset = kTitleSize + 8 + index_size;
  const uint64_t artifact_bytes = size_bytes - artifacts_offset;
  ByteReader reader(index);
  const uint64_t count = reader.U64();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    BundleEntry entry;
    entry.layer = reader.Sized();
    entry.key = reader.Sized();
    entry.stored.content_hash = reader.Sized();
    entry.stored.head = reader.Sized();
    entry.stored.artifact_size_bytes = reader.U64();
    entry.artifact_offset = reader.U64();
    if (entry.stored.artifact_size_bytes > artifact_bytes ||
        entry.artifact_offset > artifact_bytes - entry.stored.artifact_size_bytes) {
      return wrong_size;
    }
    entries.push_back(std::move(entry));
  }
  return reader.ok() && reader.at_end() ? Status() : wrong_size;
}

}  // namespace libtrace::detail
