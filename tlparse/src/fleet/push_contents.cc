#include "fleet/push_contents.h"

#include <fmt/format.h>

#include <unordered_set>

#include "fleet/shown_columns.h"
#include "fleet/sql_quote.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

using HashSet = std::unordered_set<Hash128, Hash128Hasher>;

std::string Shown(std::string_view text, bool with_text) {
  return with_text ? std::string(text) : HiddenText(text);
}

// Of a component and its text: no two components share one.
Hash128 ValueHash(const Hash128& key, std::string_view value) {
  SequenceHash hash;
  hash.Add(static_cast<std::int64_t>(key.low));
  hash.Add(value);
  return hash.Digest();
}

}  // namespace

Result<std::vector<Hash128>> ContentPusher::Known(const std::string& sql, const Hashes& hashes) {
  std::vector<Hash128> known;
  if (client_ == nullptr) return known;
  constexpr std::size_t kAtOnce = 2000;
  for (std::size_t begin = 0; begin < hashes.size(); begin += kAtOnce) {
    std::string query = sql + "(";
    for (std::size_t i = begin; i < std::min(hashes.size(), begin + kAtOnce); ++i) {
      if (i > begin) query += ',';
      query += QuoteHash(hashes[i]);
    }
    ASSIGN_OR_RETURN(const std::string answer, client_->Query(query + ") FORMAT RowBinary"));
    RowBinaryReader reader(answer);
    while (!reader.at_end()) known.push_back(reader.Hash());
    if (reader.is_short())
      return Fail(ErrorCode::kRefused, "the server's answer about contents is damaged");
  }
  return known;
}

Result<void> ContentPusher::PushContents() {
  Hashes hashes;
  for (std::int64_t id = 0; id < context_.used.contents.end(); ++id)
    if (context_.used.contents.Has(id)) hashes.push_back(context_.ContentHash(id));
  ASSIGN_OR_RETURN(const Hashes known_list,
                   Known(fmt::format("SELECT DISTINCT content_hash FROM stored_content "
                                     "WHERE content_version = {} AND content_hash IN ",
                                     content_version_),
                         hashes));
  const HashSet known(known_list.begin(), known_list.end());
  const auto is_wanted = [&](std::int64_t id) {
    return context_.used.contents.Has(id) && !known.count(context_.ContentHash(id));
  };
  for (const FleetTable& table : schema_.tables) {
    if (table.kind != FleetTable::Kind::kContent) continue;
    std::vector<std::string> columns{"content_hash", "content_version"};
    for (const FleetColumn& column : table.columns) columns.push_back(column.name);
    TableInsert insert(client_, table.name, columns, {}, counters_);
    RETURN_IF_ERROR(
        WriteContentRows(context_, table, options_, content_version_, is_wanted, insert));
    RETURN_IF_ERROR(insert.Finish());
  }
  TableInsert stored(client_, "stored_content", {"content_hash", "content_version", "kind"}, {},
                     counters_);
  FOR_EACH_ROW(const AnyRow& read,
               AnyRows::Of(context_.database(), "SELECT id, kind FROM content_row")) {
    if (!is_wanted(read.Int("id"))) continue;
    RowBinaryWriter write(stored.row());
    write.Hash(context_.ContentHash(read.Int("id")));
    write.UInt64(content_version_);
    write.Text(read.Text("kind"));
    RETURN_IF_ERROR(stored.EndRow());
  }
  return stored.Finish();
}

Result<void> ContentPusher::PushPayloads() {
  TableInsert insert(client_, "payload",
                     {"content_hash", "hash", "size_bytes", "content", "is_blob"}, {}, counters_);
  FOR_EACH_ROW(
      const AnyRow& read,
      AnyRows::Of(context_.database(), "SELECT id, hash, size_bytes, content FROM payload_row")) {
    if (!context_.used.payloads.Has(read.Int("id"))) continue;
    const std::optional<Hash128> hash = FromHex(read.Text("hash"));
    if (!hash) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(context_.PayloadContent(read.Int("id")));
    write.Hash(*hash);
    write.Int64(read.Int("size_bytes"));
    if (options_.with_text) {
      write.Text(read.Text("content"));
    } else {
      write.Text(HiddenText(read.Text("content")));
    }
    write.UInt8(!read.IsText("content") && options_.with_text ? 1 : 0);
    RETURN_IF_ERROR(insert.EndRow());
  }
  return insert.Finish();
}

Result<void> ContentPusher::PushComponents() {
  IdSet components;
  for (const auto& [set, members] : context_.sets()) {
    if (!context_.used.sets.Has(set)) continue;
    for (const std::int64_t component : members) components.Add(component);
  }
  RETURN_IF_ERROR(PushComponentRows(components));
  RETURN_IF_ERROR(PushComponentHashes(components));
  return PushSets();
}

Result<void> ContentPusher::PushComponentRows(const IdSet& components) {
  Hashes keys;
  for (std::int64_t id = 0; id < components.end(); ++id)
    if (components.Has(id)) keys.push_back(context_.ComponentKey(id));
  // Components of one hash may differ in what their text shows (addresses): each text is kept.
  ASSIGN_OR_RETURN(const Hashes known_list,
                   Known("SELECT value_hash FROM component WHERE key IN ", keys));
  const HashSet known(known_list.begin(), known_list.end());
  TableInsert insert(client_, "component", {"key", "value_hash", "name", "hash", "value"}, {},
                     counters_);
  FOR_EACH_ROW(const AnyRow& read,
               AnyRows::Of(context_.database(),
                           "SELECT c.id, t.text AS name, c.hash, c.value "
                           "FROM component_row c JOIN text_row t ON t.id = c.name_id")) {
    if (!components.Has(read.Int("id"))) continue;
    const Hash128 key = context_.ComponentKey(read.Int("id"));
    const std::string value = Shown(read.Text("value"), options_.with_text);
    const Hash128 value_hash = ValueHash(key, value);
    if (known.count(value_hash)) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(key);
    write.Hash(value_hash);
    write.Text(read.Text("name"));
    write.NullFlag(read.IsNull("hash"));
    if (!read.IsNull("hash")) write.Text(read.Text("hash"));
    write.Text(value);
    RETURN_IF_ERROR(insert.EndRow());
  }
  return insert.Finish();
}

Result<void> ContentPusher::PushComponentHashes(const IdSet& components) {
  TableInsert insert(client_, "component_hash", {"component", "device_index", "hash"}, {},
                     counters_);
  FOR_EACH_ROW(const AnyRow& read,
               AnyRows::Of(context_.database(),
                           "SELECT component_id, device_index, hash FROM component_hash_row")) {
    if (!components.Has(read.Int("component_id"))) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(context_.ComponentKey(read.Int("component_id")));
    write.Int64(read.Int("device_index"));
    write.Text(read.Text("hash"));
    RETURN_IF_ERROR(insert.EndRow());
  }
  return insert.Finish();
}

Result<void> ContentPusher::PushSets() {
  Hashes keys;
  for (const auto& [set, members] : context_.sets())
    if (context_.used.sets.Has(set)) keys.push_back(context_.SetKey(set));
  ASSIGN_OR_RETURN(const Hashes known_list,
                   Known("SELECT DISTINCT key FROM component_set WHERE key IN ", keys));
  const HashSet known(known_list.begin(), known_list.end());
  TableInsert insert(client_, "component_set", {"key", "first_hash", "components"}, {}, counters_);
  for (const auto& [set, members] : context_.sets()) {
    if (!context_.used.sets.Has(set) || known.count(context_.SetKey(set))) continue;
    ASSIGN_OR_RETURN(
        const std::string first,
        context_.database().QueryText("SELECT hash FROM component_set_row WHERE id = ?", set));
    RowBinaryWriter write(insert.row());
    write.Hash(context_.SetKey(set));
    write.Hash(FromHex(first).value_or(HashBytes(first)));
    write.Length(members.size());
    for (const std::int64_t component : members) write.Hash(context_.ComponentKey(component));
    RETURN_IF_ERROR(insert.EndRow());
  }
  return insert.Finish();
}

Result<void> ContentPusher::PushRunComponents(const std::string& key_bytes, TableInsert& insert) {
  IdSet components;
  for (const auto& [set, members] : context_.sets())
    if (context_.used.sets.Has(set))
      for (const std::int64_t component : members) components.Add(component);
  HashSet written;
  FOR_EACH_ROW(const AnyRow& read,
               AnyRows::Of(context_.database(),
                           "SELECT c.id, t.text AS name, c.value "
                           "FROM component_row c JOIN text_row t ON t.id = c.name_id")) {
    const Hash128 key = context_.ComponentKey(read.Int("id"));
    if (!components.Has(read.Int("id")) || !written.insert(key).second) continue;
    insert.row() += key_bytes;
    RowBinaryWriter write(insert.row());
    write.Text(read.Text("name"));
    write.Hash(key);
    write.Hash(ValueHash(key, Shown(read.Text("value"), options_.with_text)));
    RETURN_IF_ERROR(insert.EndRow());
  }
  return {};
}

}  // namespace tlparse
