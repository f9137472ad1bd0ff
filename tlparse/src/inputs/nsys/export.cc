#include "inputs/nsys/export.h"

#include <fmt/format.h>

#include <algorithm>

namespace tlparse {
namespace {

void Distrust(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

}  // namespace

Result<NsysExport> NsysExport::Open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr);
  NsysExport opened(handle);
  if (code != SQLITE_OK)
    return Fail(ErrorCode::kIo, fmt::format("cannot read '{}': {}", path, sqlite3_errstr(code)));
  Distrust(handle);
  return opened;
}

Result<NsysExport> NsysExport::OpenBytes(unsigned char* data, std::size_t size) {
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nullptr);
  NsysExport opened(handle);
  if (code == SQLITE_OK) {
    // The mark of a write-ahead log, which has no place in memory.
    for (const std::size_t at : {std::size_t{18}, std::size_t{19}}) {
      if (size > at && data[at] == 2) data[at] = 1;
    }
    const auto bytes = static_cast<sqlite3_int64>(size);
    code = sqlite3_deserialize(handle, "main", data, bytes, bytes, SQLITE_DESERIALIZE_READONLY);
  }
  if (code != SQLITE_OK) return Fail(ErrorCode::kNotATrace, sqlite3_errstr(code));
  Distrust(handle);
  return opened;
}

std::string NsysExport::Column(const std::string& table, const std::string& column,
                               const std::string& alias) {
  return Columns(table).count(column) > 0 ? fmt::format("{}.\"{}\"", alias, column)
                                          : std::string("NULL");
}

const std::set<std::string>& NsysExport::Columns(const std::string& table) {
  const bool is_new = columns_.count(table) == 0;
  std::set<std::string>& names = columns_[table];
  if (is_new) {
    // nsys makes no views: the file is not its export.
    const std::string sql = fmt::format(
        "SELECT c.name FROM sqlite_schema s, pragma_table_info(s.name) c "
        "WHERE s.type = 'table' AND s.name = '{}'",
        table);
    static_cast<void>(Query(sql, [&](sqlite3_stmt* row) -> Result<void> {
      names.insert(reinterpret_cast<const char*>(sqlite3_column_text(row, 0)));
      return {};
    }));
  }
  return names;
}

constexpr std::size_t kMostNameBytes = 4096;

std::string_view TextAt(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(text, std::min(size, kMostNameBytes));
}
std::optional<std::int64_t> IntAt(sqlite3_stmt* row, int column) {
  if (sqlite3_column_type(row, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(row, column);
}

}  // namespace tlparse
