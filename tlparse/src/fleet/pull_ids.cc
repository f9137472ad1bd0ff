#include "fleet/pull_ids.h"

#include "queries/fleet/pull_ids.h"

namespace tlparse {

std::int64_t IdsByHash::Intern(const Hash128& hash, std::int64_t wished, bool& is_new) {
  const auto [entry, inserted] = ids_.try_emplace(hash, 0);
  is_new = inserted;
  if (!inserted) return entry->second;
  std::int64_t id = wished;
  if (id <= 0 || !taken_.try_emplace(id, true).second) {
    id = last_ + 1;
    while (!taken_.try_emplace(id, true).second) ++id;
  }
  if (id > last_) last_ = id;
  return entry->second = id;
}

std::int64_t IdsByHash::Find(const Hash128& hash) const {
  const auto found = ids_.find(hash);
  return found == ids_.end() ? 0 : found->second;
}

Result<PulledTexts> PulledTexts::Make(Database& database) {
  ASSIGN_OR_RETURN(Statement insert,
                   database.Prepare("INSERT INTO text_row (id, text) VALUES (?, ?)"));
  PulledTexts texts(std::move(insert));
  FOR_EACH_ROW(const KnownText& row, Query<KnownText>(database)) {
    texts.ids_[HashBytes(row.text)] = row.id;
    texts.taken_[row.id] = true;
    texts.last_ = std::max(texts.last_, row.id);
  }
  // Ids up to 32 are fixed.
  texts.last_ = std::max<std::int64_t>(texts.last_, 32);
  return texts;
}

Result<std::int64_t> PulledTexts::Intern(std::string_view text, std::int64_t wished) {
  const auto [entry, is_new] = ids_.try_emplace(HashBytes(text), 0);
  if (!is_new) return entry->second;
  std::int64_t id = wished;
  if (id <= 0 || !taken_.try_emplace(id, true).second) {
    id = last_ + 1;
    while (!taken_.try_emplace(id, true).second) ++id;
  }
  last_ = std::max(last_, id);
  entry->second = id;
  insert_.Bind(1, id);
  insert_.Bind(2, text);
  RETURN_IF_ERROR(insert_.Run());
  return id;
}

Result<ContentIds> ReadContentIds(Database& database) {
  ContentIds contents;
  FOR_EACH_ROW(const KnownContent& row, Query<KnownContent>(database)) {
    if (const std::optional<Hash128> hash = FromHex(row.hash)) contents[*hash] = row.id;
  }
  return contents;
}

}  // namespace tlparse
