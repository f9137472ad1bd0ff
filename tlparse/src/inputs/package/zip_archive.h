// Reads members of an untrusted zip archive: sizes, counts and names are bounded, and
// nothing is ever written to disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tlparse {

struct ZipMember {
  std::string name;  // as in the archive, any bytes
  std::optional<std::int64_t> size_bytes;
  std::optional<std::int64_t> stored_bytes;
  std::optional<std::int64_t> crc32;
};

// Not thread-safe.
class ZipArchive {
 public:
  static constexpr std::int64_t kMostDirectoryBytes = std::int64_t{16} << 20;
  static constexpr std::size_t kMostMembers = 100'000;

  // kNotATrace: not a zip archive, or one that is cut (its directory is at the end). kRefused: its
  // directory is larger than the limits. kIo: cannot be read.
  static Result<ZipArchive> Open(const std::string& path);
  ~ZipArchive();
  ZipArchive(ZipArchive&&) noexcept;
  ZipArchive& operator=(ZipArchive&&) = delete;

  const std::vector<ZipMember>& members() const { return members_; }
  // The unpacked bytes. kRefused: more than `most_bytes`, whatever size the archive claims (no more
  // are unpacked). kDamagedInput: damaged, encrypted, or packed by an unknown method.
  Result<std::string> Read(std::size_t member, std::size_t most_bytes);

 private:
  struct State;
  explicit ZipArchive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::vector<ZipMember> members_;
};

}  // namespace tlparse
