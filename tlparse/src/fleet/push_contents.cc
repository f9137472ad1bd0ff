#include "fleet/push_contents.h"

#include <fmt/format.h>

#include <unordered_set>

#include "fleet/shown_columns.h"
#include "fleet/sql_quote.h"

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
  ASSIGN_OR_RETURN(Statement read, context_.database().Prepare("SELECT id, kind FROM content_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) break;
    if (!is_wanted(read.Int(0))) continue;
    RowBinaryWriter write(stored.row());
    write.Hash(context_.ContentHash(read.Int(0)));
    write.UInt64(content_version_);
    write.Text(read.Text(1));
    RETURN_IF_ERROR(stored.EndRow());
  }
  return stored.Finish();
}

Result<void> ContentPusher::PushPayloads() {
  TableInsert insert(client_, "payload",
                     {"content_hash", "hash", "size_bytes", "content", "is_blob"}, {}, counters_);
  ASSIGN_OR_RETURN(Statement read, context_.database().Prepare(
                                       "SELECT id, hash, size_bytes, content FROM payload_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) break;
    if (!context_.used.payloads.Has(read.Int(0))) continue;
    const std::optional<Hash128> hash = FromHex(read.Text(1));
    if (!hash) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(context_.PayloadContent(read.Int(0)));
    write.Hash(*hash);
    write.Int64(read.Int(2));
    if (options_.with_text) {
      write.Text(read.Text(3));
    } else {
      write.Text(HiddenText(read.Text(3)));
    }
    write.UInt8(read.ColumnType(3) == SQLITE_BLOB && options_.with_text ? 1 : 0);
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
  ASSIGN_OR_RETURN(Statement read, context_.database().Prepare(
                                       "SELECT c.id, t.text, c.hash, c.value "
                                       "FROM component_row c JOIN text_row t ON t.id = c.name_id"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) break;
    if (!components.Has(read.Int(0))) continue;
    const Hash128 key = context_.ComponentKey(read.Int(0));
    const std::string value = Shown(read.Text(3), options_.with_text);
    const Hash128 value_hash = ValueHash(key, value);
    if (known.count(value_hash)) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(key);
    write.Hash(value_hash);
    write.Text(read.Text(1));
    write.NullFlag(read.IsNull(2));
    if (!read.IsNull(2)) write.Text(read.Text(2));
    write.Text(value);
    RETURN_IF_ERROR(insert.EndRow());
  }
  return insert.Finish();
}

Result<void> ContentPusher::PushComponentHashes(const IdSet& components) {
  TableInsert insert(client_, "component_hash", {"component", "device_index", "hash"}, {},
                     counters_);
  ASSIGN_OR_RETURN(Statement read,
                   context_.database().Prepare(
                       "SELECT component_id, device_index, hash FROM component_hash_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) break;
    if (!components.Has(read.Int(0))) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(context_.ComponentKey(read.Int(0)));
    write.Int64(read.Int(1));
    write.Text(read.Text(2));
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
  ASSIGN_OR_RETURN(
      Statement read,
      context_.database().Prepare(
          "SELECT c.id, t.text, c.value FROM component_row c JOIN text_row t ON t.id = c.name_id"));
  HashSet written;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) return {};
    const Hash128 key = context_.ComponentKey(read.Int(0));
    if (!components.Has(read.Int(0)) || !written.insert(key).second) continue;
    insert.row() += key_bytes;
    RowBinaryWriter write(insert.row());
    write.Text(read.Text(1));
    write.Hash(key);
    write.Hash(ValueHash(key, Shown(read.Text(2), options_.with_text)));
    RETURN_IF_ERROR(insert.EndRow());
  }
}

}  // namespace tlparse
