#include "store/hash128.h"

#include <xxhash.h>

#include <fmt/format.h>

namespace tlparse {

Hash128 HashBytes(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::string ToHex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

SequenceHash::SequenceHash() : state_(XXH3_createState()) { XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_)); }
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
