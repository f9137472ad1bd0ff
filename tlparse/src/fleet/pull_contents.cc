#include "fleet/pull_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Source = FleetColumn::Source;
using Type = FleetColumn::Type;

constexpr std::size_t kKeysAtOnce = 2000;

std::string ListOf(const std::vector<Hash128>& keys, std::size_t begin) {
  std::string list = "(";
  for (std::size_t i = begin; i < std::min(keys.size(), begin + kKeysAtOnce); ++i) {
    if (i > begin) list += ',';
    list += QuoteHash(keys[i]);
  }
  return list + ")";
}

// The contents of the loads of one version, as a condition on a table of contents.
std::string OfContents(std::span<const PushRow> loads, std::uint64_t version) {
  std::vector<PushRow> of_version;
  for (const PushRow& load : loads)
    if (load.content_version == version) of_version.push_back(load);
  return fmt::format(
      "content_version = {} AND content_hash IN (SELECT toFixedString(unhex(hash), 16) "
      "FROM content WHERE {})",
      version, OfLoads(of_version));
}

std::set<std::uint64_t> Versions(std::span<const PushRow> loads) {
  std::set<std::uint64_t> versions;
  for (const PushRow& load : loads) versions.insert(load.content_version);
  return versions;
}

// content_hash and the primary key, so that rows that were sent twice come once.
std::string KeyOf(const FleetTable& table) {
  std::string key = "content_hash";
  for (const std::string& name : table.order_by) key += ", " + QuoteName(name);
  return key;
}

}  // namespace

Result<void> ContentPuller::PullContents() {
  ASSIGN_OR_RETURN(const ContentIds contents, ReadContentIds(run_.database));
  for (const FleetTable& table : run_.schema.tables)
    if (table.kind == FleetTable::Kind::kContent)
      RETURN_IF_ERROR(PullContentTable(table, contents));
  return {};
}

// Ids within contents follow each other in the order of the contents, as when they were read.
Result<void> ContentPuller::SetBase(const FleetTable& table, const std::string& where,
                                    const ContentIds& contents) {
  std::map<std::int64_t, std::int64_t> counts;
  ASSIGN_OR_RETURN(
      [[maybe_unused]] const std::uint64_t rows,
      StreamRows(run_.client,
                 fmt::format("SELECT content_hash, max(id) FROM {} WHERE {} GROUP BY content_hash",
                             QuoteName(table.name), where),
                 run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                   const Hash128 hash = reader.Hash();
                   const std::int64_t last = reader.Int64();
                   const auto found = contents.find(hash);
                   if (!reader.is_short() && found != contents.end())
                     counts[found->second] = last + 1;
                   return {};
                 }));
  auto& base = run_.id_base[table.name];
  std::int64_t next = 0;
  for (const auto& [content, start] : base) next = std::max(next, start);
  for (const auto& [content, count] : counts) {
    if (!base.emplace(content, next).second) continue;
    next += count;
  }
  return {};
}

Result<void> ContentPuller::PullContentTable(const FleetTable& table, const ContentIds& contents) {
  std::string sql = "INSERT OR IGNORE INTO " + table.sqlite_name + " VALUES (";
  for (std::size_t i = 0; i < table.sqlite_columns.size(); ++i) sql += i == 0 ? "?" : ", ?";
  ASSIGN_OR_RETURN(Statement insert, run_.database.Prepare(sql + ")"));
  const int content_at = table.FindSqlite("content_id");
  const int id_at = table.has_id ? table.FindSqlite("id") : -1;
  std::string select = "SELECT content_hash";
  for (const FleetColumn& column : table.columns) select += ", " + QuoteName(column.name);
  for (const std::uint64_t version : Versions(loads_)) {
    const std::string where = OfContents(loads_, version);
    if (id_at >= 0) RETURN_IF_ERROR(SetBase(table, where, contents));
    const auto read_row = [&](RowBinaryReader& reader) -> Result<void> {
      const auto content = contents.find(reader.Hash());
      const std::int64_t content_id = content == contents.end() ? 0 : content->second;
      // Bound as it is read: nothing is inserted if the row is short.
      if (content_at >= 0) insert.Bind(content_at + 1, content_id);
      for (const FleetColumn& column : table.columns) {
        const bool is_null = column.is_nullable && reader.UInt8() != 0;
        const int parameter = column.sqlite_column + 1;
        const SqliteColumn& to =
            table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)];
        if (is_null) {
          insert.BindNull(parameter);
          continue;
        }
        if (column.type == Type::kReal) {
          insert.Bind(parameter, reader.Real());
        } else if (column.type == Type::kInt) {
          std::int64_t value = reader.Int64();
          if (column.sqlite_column == id_at)
            value += run_.id_base[table.name][content_id] + 1;
          else if (to.reference == ColumnReference::kOwned)
            value += run_.id_base[to.referenced][content_id] + 1;
          insert.Bind(parameter, value);
        } else {
          const std::string_view text = reader.Text();
          if (reader.is_short() || reader.is_damaged()) return {};
          if (to.reference == ColumnReference::kText) {
            ASSIGN_OR_RETURN(const std::int64_t id, run_.texts.Intern(text, 0));
            insert.Bind(parameter, id);
          } else {
            insert.Bind(parameter, text);
          }
        }
      }
      if (reader.is_short() || reader.is_damaged() || content_id == 0) return {};
      ++run_.rows;
      return insert.Run();
    };
    const std::string key = KeyOf(table);
    ASSIGN_OR_RETURN([[maybe_unused]] const std::uint64_t rows,
                     StreamRows(run_.client,
                                fmt::format("{} FROM {} WHERE {} ORDER BY {} LIMIT 1 BY {}", select,
                                            QuoteName(table.name), where, key, key),
                                run_.limit, read_row));
  }
  return {};
}

Result<std::vector<ContentPuller::Set>> ContentPuller::ReadSets(const std::vector<Hash128>& keys) {
  std::vector<Set> sets;
  const auto read_row = [&](RowBinaryReader& reader) -> Result<void> {
    Set set;
    set.id = run_.sets.Find(reader.Hash());
    set.first_hash = reader.Hash();
    const std::uint64_t length = reader.Length();
    if (length > reader.left() / 16) {
      // The row is cut off: the reader becomes short and reports it.
      while (!reader.is_short()) reader.Hash();
      return {};
    }
    for (std::uint64_t i = 0; i < length; ++i) set.components.push_back(reader.Hash());
    if (!reader.is_short() && set.id > 0) sets.push_back(std::move(set));
    return {};
  };
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t rows,
        StreamRows(run_.client,
                   fmt::format("SELECT key, first_hash, components "
                               "FROM component_set WHERE key IN {} ORDER BY key LIMIT 1 BY key",
                               ListOf(keys, begin)),
                   run_.limit, read_row));
  }
  if (sets.size() != keys.size())
    return Fail(ErrorCode::kRefused, fmt::format("{}: {} of {} component sets are there",
                                                 run_.client.url(), sets.size(), keys.size()));
  std::sort(sets.begin(), sets.end(), [](const Set& a, const Set& b) { return a.id < b.id; });
  return sets;
}

Result<void> ContentPuller::PullSets() {
  std::vector<Hash128> keys;
  for (const auto& [key, id] : run_.sets.all())
    if (!(key == Hash128{})) keys.push_back(key);
  ASSIGN_OR_RETURN(const std::vector<Set> sets, ReadSets(keys));
  std::vector<Hash128> components;
  for (const Set& set : sets)
    for (const Hash128& component : set.components)
      if (components_.try_emplace(component, static_cast<std::int64_t>(components_.size()) + 1)
              .second)
        components.push_back(component);
  RETURN_IF_ERROR(PullComponents(components));
  return WriteSets(sets);
}

Result<void> ContentPuller::WriteSets(const std::vector<Set>& sets) {
  ASSIGN_OR_RETURN(Statement set_row,
                   run_.database.Prepare("INSERT INTO component_set_row VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(
      Statement run_row,
      run_.database.Prepare("INSERT INTO component_run_row VALUES (?1, 0, ?2, ?1, 0)"));
  ASSIGN_OR_RETURN(Statement list_row,
                   run_.database.Prepare("INSERT INTO component_list_row VALUES (?, ?, ?)"));
  for (const Set& set : sets) {
    const auto length = static_cast<std::int64_t>(set.components.size());
    const std::string hash = ToHex(set.first_hash);
    set_row.Bind(1, set.id);
    set_row.Bind(2, std::string_view(hash));
    set_row.Bind(3, length);
    RETURN_IF_ERROR(set_row.Run());
    run_row.Bind(1, set.id);
    run_row.Bind(2, length);
    RETURN_IF_ERROR(run_row.Run());
    for (std::int64_t i = 0; i < length; ++i) {
      list_row.Bind(1, set.id);
      list_row.Bind(2, i);
      list_row.Bind(3, components_.at(set.components[static_cast<std::size_t>(i)]));
      RETURN_IF_ERROR(list_row.Run());
    }
  }
  return {};
}

Result<void> ContentPuller::PullComponents(const std::vector<Hash128>& keys) {
  ASSIGN_OR_RETURN(Statement insert,
                   run_.database.Prepare("INSERT INTO component_row VALUES (?, ?, ?, ?)"));
  std::uint64_t count = 0;
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    ASSIGN_OR_RETURN(
        const std::uint64_t rows,
        StreamRows(run_.client,
                   fmt::format("SELECT key, name, hash, value "
                               "FROM component WHERE key IN {} AND (key, value_hash) IN ("
                               "SELECT component, value_hash FROM run_component WHERE {}) "
                               "ORDER BY key, value_hash LIMIT 1 BY key",
                               ListOf(keys, begin), OfLoads(loads_)),
                   run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                     const auto id = components_.find(reader.Hash());
                     const std::string_view name = reader.Text();
                     const bool has_hash = reader.UInt8() == 0;
                     const std::string_view hash = has_hash ? reader.Text() : std::string_view();
                     const std::string_view value = reader.Text();
                     if (reader.is_short() || reader.is_damaged() || id == components_.end())
                       return {};
                     ASSIGN_OR_RETURN(const std::int64_t name_id, run_.texts.Intern(name, 0));
                     insert.Bind(1, id->second);
                     insert.Bind(2, name_id);
                     if (has_hash) {
                       insert.Bind(3, hash);
                     } else {
                       insert.BindNull(3);
                     }
                     insert.Bind(4, value);
                     return insert.Run();
                   }));
    count += rows;
  }
  if (count != keys.size())
    return Fail(ErrorCode::kRefused, fmt::format("{}: {} of {} components are there",
                                                 run_.client.url(), count, keys.size()));
  run_.rows += count;
  return PullComponentHashes(keys);
}

Result<void> ContentPuller::PullComponentHashes(const std::vector<Hash128>& keys) {
  ASSIGN_OR_RETURN(
      Statement insert,
      run_.database.Prepare("INSERT OR IGNORE INTO component_hash_row VALUES (?, ?, ?)"));
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t rows,
        StreamRows(
            run_.client,
            fmt::format("SELECT component, device_index, hash "
                        "FROM component_hash WHERE component IN {0} "
                        "ORDER BY component, device_index LIMIT 1 BY component, device_index",
                        ListOf(keys, begin)),
            run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
              const auto id = components_.find(reader.Hash());
              const std::int64_t device = reader.Int64();
              const std::string_view hash = reader.Text();
              if (reader.is_short() || reader.is_damaged() || id == components_.end()) return {};
              insert.Bind(1, id->second);
              insert.Bind(2, device);
              insert.Bind(3, hash);
              return insert.Run();
            }));
  }
  return {};
}

Result<void> ContentPuller::PullPayloads(const RankRanges& ranks) {
  std::string where = OfLoads(loads_) + " AND payload_id IS NOT NULL";
  if (!ranks.empty()) where += " AND " + OfRanks(ranks);
  ASSIGN_OR_RETURN(Statement insert,
                   run_.database.Prepare("INSERT INTO payload_row VALUES (?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(
      [[maybe_unused]] const std::uint64_t rows,
      StreamRows(
          run_.client,
          fmt::format("SELECT content_hash, hash, size_bytes, content, is_blob FROM payload "
                      "WHERE (content_hash, hash) IN (SELECT payload_content_hash, payload_hash "
                      "FROM record WHERE {}) LIMIT 1 BY hash",
                      where),
          run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
            reader.Hash();
            const Hash128 hash = reader.Hash();
            const std::int64_t size = reader.Int64();
            const std::string_view content = reader.Text();
            const bool is_blob = reader.UInt8() != 0;
            if (reader.is_short() || reader.is_damaged()) return {};
            const std::int64_t id = run_.payloads.Find(hash);
            if (id == 0 || written_payloads_.Has(id)) return {};
            written_payloads_.Add(id);
            const std::string text = ToHex(hash);
            insert.Bind(1, id);
            insert.Bind(2, std::string_view(text));
            insert.Bind(3, size);
            if (is_blob) {
              insert.BindBlob(4, content);
            } else {
              insert.Bind(4, content);
            }
            ++run_.rows;
            return insert.Run();
          }));
  return {};
}

}  // namespace tlparse
