// Rows of a statement whose columns are known only when the program runs, read by name; for one
// whose text is known when it is built see store/query.h.
//
//   FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) {
//     … row.Text("name"), row.OptionalReal("device_us") …
//   }
//
// A column that the statement does not have reads as NULL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/database.h"
#include "store/query.h"

namespace tlparse {

// The current row. Text is valid until the next row.
class AnyRow {
 public:
  bool IsNull(std::string_view name) const { return Column(name) < 0; }
  // Otherwise damaged: bytes that are not UTF-8 are stored as a BLOB.
  bool IsText(std::string_view name) const {
    const int column = Column(name);
    return column >= 0 && statement_.ColumnType(column) == SQLITE_TEXT;
  }
  std::int64_t Int(std::string_view name) const { return OptionalInt(name).value_or(0); }
  double Real(std::string_view name) const { return OptionalReal(name).value_or(0); }
  std::string_view Text(std::string_view name) const {
    const int column = Column(name);
    return column < 0 ? std::string_view() : statement_.Text(column);
  }
  std::optional<std::int64_t> OptionalInt(std::string_view name) const {
    const int column = Column(name);
    return column < 0 ? std::nullopt : statement_.OptionalInt(column);
  }
  std::optional<double> OptionalReal(std::string_view name) const {
    const int column = Column(name);
    return column < 0 ? std::nullopt : statement_.OptionalReal(column);
  }

  // For what shows values of any type. -1: there is no such column, or it is NULL.
  int Column(std::string_view name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name)
        return statement_.IsNull(static_cast<int>(i)) ? -1 : static_cast<int>(i);
    return -1;
  }
  const Statement& statement() const { return statement_; }

 private:
  friend class AnyRows;
  Statement statement_;
  std::vector<std::string> names_;
};

// Moved, not copied; must not outlive the database.
class AnyRows {
 public:
  // Parameters are bound.
  static AnyRows Of(Statement statement) {
    AnyRows rows;
    for (int i = 0; i < statement.column_count(); ++i)
      rows.row_.names_.emplace_back(statement.ColumnName(i));
    rows.row_.statement_ = std::move(statement);
    return rows;
  }
  static AnyRows Of(Database& database, std::string_view sql) {
    Result<Statement> statement = database.Prepare(sql);
    if (statement) return Of(std::move(*statement));
    AnyRows rows;
    rows.error_ = std::make_unique<Error>(std::move(statement).error());
    return rows;
  }

  // Reads the next row. False: there is none, or an error.
  bool Next() {
    if (error_) return false;
    Result<bool> has_row = row_.statement_.Step();
    if (!has_row) error_ = std::make_unique<Error>(std::move(has_row).error());
    return has_row && *has_row;
  }
  const AnyRow& row() const { return row_; }
  // To bind other parameters: before the first row, or after Next() was false.
  Statement& statement() { return row_.statement_; }
  bool has_error() const { return error_ != nullptr; }
  // After Next() was false: the error that ended the rows, or nullptr.
  std::unique_ptr<Error> TakeError() { return std::move(error_); }

 private:
  AnyRow row_;
  std::unique_ptr<Error> error_;
};

}  // namespace tlparse
