#include "inputs/package/zip_archive.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

namespace tlparse {
namespace {

std::uint64_t Number(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return number;
}

// Looks at the size of the directory before libzip takes memory for it.
Result<void> CheckDirectory(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    return Fail(ErrorCode::kIo, fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  const std::int64_t size = file.tellg();
  // End record with the longest comment, zip64 locator.
  constexpr std::int64_t kTailBytes = 22 + 65535 + 20;
  const std::int64_t from = std::max<std::int64_t>(0, size - kTailBytes);
  std::string tail(static_cast<std::size_t>(size - from), '\0');
  file.seekg(from);
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == tail.npos || tail.size() - end < 22)
    return Fail(ErrorCode::kNotATrace, "the archive has no directory at its end: it was cut");
  std::uint64_t count = Number(tail, end + 10, 2);
  std::uint64_t bytes = Number(tail, end + 12, 4);
  if (end >= 20 && tail.compare(end - 20, 4, "PK\x06\x07") == 0) {
    const std::uint64_t at = Number(tail, end - 12, 8);
    std::string record(56, '\0');
    if (at > static_cast<std::uint64_t>(size))
      return Fail(ErrorCode::kNotATrace, "the archive's directory is damaged");
    file.clear();
    file.seekg(static_cast<std::streamoff>(at));
    file.read(record.data(), 56);
    if (record.starts_with("PK\x06\x06")) {
      count = std::max(count == 0xFFFF ? 0 : count, Number(record, 32, 8));
      bytes = std::max(bytes == 0xFFFFFFFF ? 0 : bytes, Number(record, 40, 8));
    }
  }
  if (count > ZipArchive::kMostMembers ||
      bytes > static_cast<std::uint64_t>(ZipArchive::kMostDirectoryBytes))
    return Fail(
        ErrorCode::kRefused,
        fmt::format("the archive's directory names {} members in {} bytes: more than are read",
                    count, bytes));
  return {};
}

}  // namespace

struct ZipArchive::State {
  zip_t* archive = nullptr;
  ~State() {
    if (archive != nullptr) zip_discard(archive);
  }
};

ZipArchive::ZipArchive(std::unique_ptr<State> state) : state_(std::move(state)) {}
ZipArchive::~ZipArchive() = default;
ZipArchive::ZipArchive(ZipArchive&&) noexcept = default;

Result<ZipArchive> ZipArchive::Open(const std::string& path) {
  RETURN_IF_ERROR(CheckDirectory(path));
  int code = 0;
  auto state = std::make_unique<State>();
  state->archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (state->archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string message = fmt::format("the archive cannot be read: {}", zip_error_strerror(&error));
    zip_error_fini(&error);
    return Fail(ErrorCode::kNotATrace, std::move(message));
  }
  ZipArchive archive(std::move(state));
  const zip_int64_t count = zip_get_num_entries(archive.state_->archive, 0);
  for (zip_int64_t i = 0; i < std::min<zip_int64_t>(count, kMostMembers); ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    ZipMember member;
    if (zip_stat_index(archive.state_->archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW,
                       &stat) == 0) {
      if ((stat.valid & ZIP_STAT_NAME) != 0 && stat.name != nullptr) member.name = stat.name;
      const auto number = [&](zip_uint64_t flag, zip_uint64_t value) {
        return (stat.valid & flag) != 0 && value <= INT64_MAX
                   ? std::optional(static_cast<std::int64_t>(value))
                   : std::nullopt;
      };
      member.size_bytes = number(ZIP_STAT_SIZE, stat.size);
      member.stored_bytes = number(ZIP_STAT_COMP_SIZE, stat.comp_size);
      member.crc32 = number(ZIP_STAT_CRC, stat.crc);
    }
    archive.members_.push_back(std::move(member));
  }
  return archive;
}

Result<std::string> ZipArchive::Read(std::size_t member, std::size_t most_bytes) {
  if (members_[member].size_bytes.value_or(0) > static_cast<std::int64_t>(most_bytes))
    return Fail(ErrorCode::kRefused, fmt::format("it has {} bytes, more than the {} that are read",
                                                 *members_[member].size_bytes, most_bytes));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(
      zip_fopen_index(state_->archive, member, 0), &zip_fclose);
  if (file == nullptr) return Fail(ErrorCode::kDamagedInput, zip_strerror(state_->archive));
  std::string bytes;
  std::vector<char> buffer(std::size_t{64} << 10);
  while (true) {
    const zip_int64_t count = zip_fread(file.get(), buffer.data(), buffer.size());
    if (count < 0) return Fail(ErrorCode::kDamagedInput, zip_file_strerror(file.get()));
    if (count == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
    if (bytes.size() > most_bytes)
      return Fail(ErrorCode::kRefused,
                  fmt::format("it has more than the {} bytes that are read", most_bytes));
  }
}

}  // namespace tlparse
