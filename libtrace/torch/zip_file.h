// Zip archives as PyTorch writes them: members are not compressed, large archives are Zip64.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/status.h"

namespace libtrace {

class ZipFile {
 public:
  struct Member {
    std::string name{};
    uint64_t size_bytes = 0;
    uint32_t crc32 = 0;
    bool is_stored = false;
    uint64_t header_offset = 0;
  };

  // Members are what the directory at the end of the file names; nothing of them is read yet.
  Status Open(const std::string& path);
  // An archive that is a stored member of another one.
  Status OpenWithin(ZipFile& outer, const Member& member);
  const std::vector<Member>& members() const { return members_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Empty if the member is compressed, larger than `max_size_bytes`, or not where the directory
  // says.
  std::optional<std::string> Read(const Member& member, uint64_t max_size_bytes);

 private:
  Status ReadDirectory();
  std::string ReadAt(uint64_t offset, uint64_t size_bytes);
  // Where the content of a member begins; empty: not where the directory says.
  std::optional<uint64_t> StartOf(const Member& member);

  std::string path_;
  std::ifstream file_;
  uint64_t start_ = 0;  // of the archive within the file
  uint64_t size_bytes_ = 0;
  std::vector<Member> members_;
};

}  // namespace libtrace
