#include "store/query.h"

#include <sqlite3.h>

#include "base/json_writer.h"

namespace tlparse {

void BindCopy(Statement& statement, int index, std::string_view text) {
  sqlite3_bind_text64(statement.handle(), index, text.data() == nullptr ? "" : text.data(),
                      text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void BindList(Statement& statement, int index, std::span<const std::int64_t> values) {
  std::string list = "[";
  for (const std::int64_t value : values) {
    if (list.size() > 1) list += ',';
    list += std::to_string(value);
  }
  BindCopy(statement, index, list + ']');
}

void BindList(Statement& statement, int index, std::span<const std::string> values) {
  JsonWriter list;
  list.BeginArray();
  for (const std::string& value : values) list.String(value);
  list.EndArray();
  BindCopy(statement, index, list.text());
}

}  // namespace tlparse
