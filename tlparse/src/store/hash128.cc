#include "store/hash128.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>

#include "base/ascii.h"

namespace tlparse {

Hash128 HashBytes(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::string ToHex(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

std::optional<Hash128> FromHex(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t index = 0; index < 32; ++index) {
    if (!IsLowerHex(hex[index])) return std::nullopt;
    halves[index / 16] = halves[index / 16] << 4 | static_cast<std::uint64_t>(HexDigit(hex[index]));
  }
  return Hash128{halves[1], halves[0]};
}

SequenceHash::SequenceHash() : state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
SequenceHash::~SequenceHash() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void SequenceHash::Add(std::string_view part) {
  Add(static_cast<std::int64_t>(part.size()));
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), part.data(), part.size());
}
void SequenceHash::Add(std::int64_t number) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), &number, sizeof number);
}
Hash128 SequenceHash::Digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {hash.low64, hash.high64};
}

}  // namespace tlparse
