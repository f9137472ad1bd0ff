// 128-bit content hashes (XXH3), stable over processes and machines; not cryptographic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

struct Hash128Hasher {
  std::size_t operator()(const Hash128& hash) const { return static_cast<std::size_t>(hash.low); }
};

Hash128 HashBytes(std::string_view bytes);
std::string ToHex(const Hash128& hash);  // 32 lower-case characters
// the inverse; nothing if it is not 32 such characters
std::optional<Hash128> FromHex(std::string_view hex);

// Hash of a sequence of parts: parts are kept apart ("ab","c" differs from "a","bc").
class SequenceHash {
 public:
  SequenceHash();
  ~SequenceHash();
  SequenceHash(const SequenceHash&) = delete;
  SequenceHash& operator=(const SequenceHash&) = delete;
  void Add(std::string_view part);
  void Add(std::int64_t number);
  Hash128 Digest() const;

 private:
  void* state_;
};

}  // namespace tlparse
