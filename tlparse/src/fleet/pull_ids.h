// Ids of a pulled database: those of the pushed one if they are free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// Rows known by hash: a free id is kept, any other one is replaced by the next free id.
class IdsByHash {
 public:
  // `is_new`: the row is to be written.
  std::int64_t Intern(const Hash128& hash, std::int64_t wished, bool& is_new);
  // 0: unknown.
  std::int64_t Find(const Hash128& hash) const;
  std::size_t size() const { return ids_.size(); }
  const std::unordered_map<Hash128, std::int64_t, Hash128Hasher>& all() const { return ids_; }

 private:
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> ids_;
  std::unordered_map<std::int64_t, bool> taken_;
  std::int64_t last_ = 0;
};

// Strings of table `text_row`; those with fixed ids exist already.
class PulledTexts {
 public:
  static Result<PulledTexts> Make(Database& database);
  // `wished` 0: any id.
  Result<std::int64_t> Intern(std::string_view text, std::int64_t wished);

 private:
  explicit PulledTexts(Statement insert) : insert_(std::move(insert)) {}
  Statement insert_;
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> ids_;
  std::unordered_map<std::int64_t, bool> taken_;
  std::int64_t last_ = 0;
};

// Contents of a database by the hash of what they hold.
using ContentIds = std::unordered_map<Hash128, std::int64_t, Hash128Hasher>;
Result<ContentIds> ReadContentIds(Database& database);

// Ids of one load.
struct LoadIds {
  // Added to ids of facts, by table: loads of one run are numbered one after the other.
  std::map<std::string, std::int64_t, std::less<>> shift;
  std::unordered_map<std::int64_t, std::int64_t> contents, keys;
};

}  // namespace tlparse
