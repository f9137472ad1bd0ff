#include "base/file_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/input.h"

namespace tlparse {

ByteHash::ByteHash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
ByteHash::~ByteHash() { XXH3_freeState(state_); }
void ByteHash::Add(std::string_view bytes) {
  XXH3_128bits_update(state_, bytes.data(), bytes.size());
}
std::string ByteHash::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<std::string> HashFile(const std::string& path, std::int64_t most_bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<InputStream> input, OpenInput(path));
  ByteHash hash;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const auto most = std::min<std::int64_t>(std::ssize(buffer), most_bytes);
    const Result<std::size_t> read = input->Read(buffer.data(), static_cast<std::size_t>(most));
    if (!read || *read == 0) return hash.Hex();
    hash.Add({buffer.data(), *read});
    most_bytes -= static_cast<std::int64_t>(*read);
  }
}

}  // namespace tlparse
