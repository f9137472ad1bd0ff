#include "torch/zip_file.h"

#include <algorithm>
#include <string_view>

namespace libtrace {
namespace {

constexpr size_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kEntrySize = 46,
                 kHeaderSize = 30;
constexpr uint32_t kMany = 0xffffffff;  // the true value is in a Zip64 field
constexpr uint64_t kMaxDirectorySize = uint64_t{256} << 20;

// Little-endian; 0 beyond the end.
template <class Number>
Number At(std::string_view bytes, size_t offset) {
  Number value = 0;
  if (offset + sizeof(Number) > bytes.size()) return value;
  for (size_t i = sizeof(Number); i-- > 0;) {
    value = static_cast<Number>(value << 8 | static_cast<unsigned char>(bytes[offset + i]));
  }
  return value;
}

// The values that did not fit an entry's 32 bits follow in its extra field, in this order.
void ReadZip64(std::string_view extra, uint64_t& size, uint64_t& compressed_size,
               uint64_t& offset) {
  while (extra.size() >= 4) {
    const size_t length = At<uint16_t>(extra, 2);
    if (At<uint16_t>(extra, 0) == 1) {
      size_t at = 4;
      for (uint64_t* value : {&size, &compressed_size, &offset}) {
        if (*value != kMany) continue;
        *value = At<uint64_t>(extra, at);
        at += 8;
      }
      return;
    }
    extra.remove_prefix(std::min(extra.size(), length + 4));
  }
}

}  // namespace

std::string ZipFile::ReadAt(uint64_t offset, uint64_t size_bytes) {
  if (offset > size_bytes_ || size_bytes > size_bytes_ - offset) return {};
  std::string bytes(size_bytes, '\0');
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(start_ + offset));
  if (!file_.read(bytes.data(), static_cast<std::streamsize>(size_bytes))) return {};
  return bytes;
}

Status ZipFile::Open(const std::string& path) {
  path_ = path;
  file_.open(path, std::ios::binary | std::ios::ate);
  if (!file_) return Status::Error("cannot read " + path);
  size_bytes_ = static_cast<uint64_t>(file_.tellg());
  return ReadDirectory();
}

Status ZipFile::OpenWithin(ZipFile& outer, const Member& member) {
  const std::optional<uint64_t> start = outer.StartOf(member);
  if (!start || !member.is_stored || *start > outer.size_bytes_ ||
      member.size_bytes > outer.size_bytes_ - *start)
    return Status::Error(member.name + " cannot be read");
  path_ = member.name;
  file_.open(outer.path_, std::ios::binary);
  if (!file_) return Status::Error("cannot read " + outer.path_);
  start_ = outer.start_ + *start;
  size_bytes_ = member.size_bytes;
  return ReadDirectory();
}

Status ZipFile::ReadDirectory() {
  members_.clear();
  // A comment may follow the end record.
  const uint64_t tail_size = std::min<uint64_t>(size_bytes_, kEndSize + 0xffff);
  const std::string tail = ReadAt(size_bytes_ - tail_size, tail_size);
  const size_t end = tail.rfind("PK\5\6");
  if (end == std::string::npos || end + kEndSize > tail.size())
    return Status::Error(path_ + " is no zip archive, or cut off");
  uint64_t count = At<uint16_t>(tail, end + 10);
  uint64_t directory_size = At<uint32_t>(tail, end + 12);
  uint64_t directory_offset = At<uint32_t>(tail, end + 16);
  if (end >= kLocatorSize && tail.compare(end - kLocatorSize, 4, "PK\6\7") == 0) {
    const std::string end64 = ReadAt(At<uint64_t>(tail, end - kLocatorSize + 8), kEnd64Size);
    count = At<uint64_t>(end64, 32);
    directory_size = At<uint64_t>(end64, 40);
    directory_offset = At<uint64_t>(end64, 48);
  }
  if (directory_size > kMaxDirectorySize)
    return Status::Error(path_ + ": the directory of the archive is damaged");
  const std::string directory = ReadAt(directory_offset, directory_size);
  std::string_view rest = directory;
  for (; count > 0 && rest.size() >= kEntrySize && rest.starts_with("PK\1\2"); --count) {
    const size_t name_size = At<uint16_t>(rest, 28), extra_size = At<uint16_t>(rest, 30);
    const size_t entry_size = kEntrySize + name_size + extra_size + At<uint16_t>(rest, 32);
    if (entry_size > rest.size()) break;
    Member member{.name = std::string(rest.substr(kEntrySize, name_size)),
                  .size_bytes = At<uint32_t>(rest, 24),
                  .crc32 = At<uint32_t>(rest, 16),
                  .is_stored = At<uint16_t>(rest, 10) == 0,
                  .header_offset = At<uint32_t>(rest, 42)};
    uint64_t compressed_size = At<uint32_t>(rest, 20);
    ReadZip64(rest.substr(kEntrySize + name_size, extra_size), member.size_bytes, compressed_size,
              member.header_offset);
    members_.push_back(std::move(member));
    rest.remove_prefix(entry_size);
  }
  if (count > 0) return Status::Error(path_ + ": the directory of the archive is damaged");
  return {};
}

std::optional<uint64_t> ZipFile::StartOf(const Member& member) {
  const std::string header = ReadAt(member.header_offset, kHeaderSize);
  if (!header.starts_with("PK\3\4")) return {};
  return member.header_offset + kHeaderSize + At<uint16_t>(header, 26) + At<uint16_t>(header, 28);
}

std::optional<std::string> ZipFile::Read(const Member& member, uint64_t max_size_bytes) {
  if (!member.is_stored || member.size_bytes > max_size_bytes) return {};
  const std::optional<uint64_t> start = StartOf(member);
  if (!start) return {};
  std::string bytes = ReadAt(*start, member.size_bytes);
  if (bytes.size() != member.size_bytes) return {};
  return bytes;
}

}  // namespace libtrace
