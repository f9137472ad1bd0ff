// RepairJson on any bytes: what it returns is JSON for SQLite and for simdjson, without duplicate
// members, and repairing it again changes nothing; what simdjson accepts it accepts too.
#include <simdjson.h>
#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json_repair.h"

namespace {

void Require(bool is_true) {
  if (!is_true) std::abort();
}

bool IsValidForSqlite(std::string_view text) {
  static sqlite3_stmt* const statement = [] {
    sqlite3* database = nullptr;
    sqlite3_stmt* prepared = nullptr;
    Require(sqlite3_open(":memory:", &database) == SQLITE_OK);
    Require(sqlite3_prepare_v2(database, "SELECT json_valid(?1)", -1, &prepared, nullptr) ==
            SQLITE_OK);
    return prepared;
  }();
  sqlite3_bind_text64(statement, 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  Require(sqlite3_step(statement) == SQLITE_ROW);
  const bool is_valid = sqlite3_column_int(statement, 0) == 1;
  sqlite3_reset(statement);
  return is_valid;
}

// A number that is too large for simdjson; newer versions have a code of their own for integers.
bool IsAboutRange(simdjson::error_code error) {
  return error == simdjson::NUMBER_ERROR ||
         std::string_view(simdjson::error_message(error)).find("integer") != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // libFuzzer's empty input has no address, which simdjson's copy is not made for.
  const std::string_view text = size == 0
                                    ? std::string_view("")
                                    : std::string_view(reinterpret_cast<const char*>(data), size);
  static simdjson::dom::parser parser;
  simdjson::dom::element element;
  const bool was_strict = parser.parse(text.data(), text.size()).get(element) == simdjson::SUCCESS;
  const bool had_duplicate = was_strict && tlparse::HasDuplicateMembers(element);

  const auto repaired = tlparse::RepairJson(text);
  if (!repaired) {
    Require(!was_strict);
    return 0;
  }
  if (was_strict) {
    Require(!repaired->had_nan && !repaired->had_invalid_utf8 && !repaired->had_control);
    Require(repaired->had_lone_surrogate || repaired->had_duplicate == had_duplicate);
  }
  Require(IsValidForSqlite(repaired->text));
  const simdjson::error_code error =
      parser.parse(repaired->text.data(), repaired->text.size()).get(element);
  Require(error == simdjson::SUCCESS || IsAboutRange(error));
  if (error == simdjson::SUCCESS) Require(!tlparse::HasDuplicateMembers(element));

  const auto again = tlparse::RepairJson(repaired->text);
  Require(again && again->text == repaired->text && !again->had_duplicate &&
          !again->had_lone_surrogate && !again->had_nan);
  return 0;
}
