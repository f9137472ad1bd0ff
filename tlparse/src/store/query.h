// Rows of named queries, read by name.
//
// A query is in an .sql file beside the sources that run it:
//
//   -- Ranks of a launch that have a log.
//   -- query RankWithLog(run_id INTEGER, launch INTEGER?, in_logs SQL, ids INTEGER[])
//   SELECT p.rank, count(*) AS records /*INTEGER*/, max(r.time) AS last_us /*INTEGER?*/
//   FROM … WHERE f.run_id = :run_id AND {in_logs} AND p.id IN (SELECT value FROM json_each(:ids))
//   GROUP BY p.rank;
//
// The build checks it against the schema and makes "queries/<path of the file without .sql>.h" with
// the struct RankWithLog: one member for each column, and RankWithLog::Parameters. Then
//
//   FOR_EACH_ROW(const RankWithLog& row, Query<RankWithLog>(database, {.run_id = 1, …})) {
//     … row.rank, row.records …
//   }
//
// Columns. A column of a table has the type that the table declares; one that references a lookup
// table has its enum; one of a name with is_ or has_ is a bool. A number or enum is a std::optional
// if it may be NULL: its table allows it, an outer join of the query or of a view in it may leave it
// out, or one of them is a compound. A comment behind the name says otherwise: /*INTEGER*/, /*REAL*/,
// /*TEXT*/, /*BOOLEAN*/ or a lookup table, with "?" for a std::optional. Expressions, and columns of
// views that are compounds, need one. Without std::optional NULL is read as 0, false or empty text.
//
// Parameters. INTEGER, REAL, TEXT, BOOLEAN or a lookup table, "?" if NULL may be given; a list
// (INTEGER[], TEXT[]) is given as JSON; SQL is a condition that is put in place of {name}. A
// parameter without "?" has no default: leaving it out does not compile.
//
// Text is std::string_view: of a row, valid until the next row (copy what is kept); of a parameter,
// copied.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A parameter that has to be given.
template <typename T>
class Given {
 public:
  template <typename U>
  requires std::convertible_to<const U&, T> Given(const U& value) : value_(value) {}
  const T& value() const { return value_; }

 private:
  T value_;
};

// For the generated structs.
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
T ReadColumn(const Statement& row, int column) {
  if constexpr (kIsOptional<T>) {
    if (row.IsNull(column)) return std::nullopt;
    return ReadColumn<typename T::value_type>(row, column);
  } else if constexpr (std::is_same_v<T, double>) {
    return row.Real(column);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return row.Text(column);
  } else if constexpr (std::is_same_v<T, bool>) {
    return row.Int(column) != 0;
  } else {
    return static_cast<T>(row.Int(column));
  }
}

void BindCopy(Statement& statement, int index, std::string_view text);
void BindList(Statement& statement, int index, std::span<const std::int64_t> values);
void BindList(Statement& statement, int index, std::span<const std::string> values);

template <typename T>
void BindParameter(Statement& statement, int index, const T& value) {
  if constexpr (kIsOptional<T>) {
    value ? BindParameter(statement, index, *value) : statement.BindNull(index);
  } else if constexpr (std::is_same_v<T, double>) {
    statement.Bind(index, value);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    BindCopy(statement, index, value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    statement.Bind(index, static_cast<std::int64_t>(value));
  } else {
    BindList(statement, index, value);
  }
}

// The rows of one run of a query. Moved, not copied; must not outlive the database.
template <typename Row>
class QueryRows {
 public:
  explicit QueryRows(Statement statement) : own_(std::move(statement)), statement_(&own_) {}
  // Of a statement that is used again, reset when the rows end.
  explicit QueryRows(Statement* statement) : statement_(statement) {}
  explicit QueryRows(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  QueryRows(QueryRows&& other) noexcept
      : own_(std::move(other.own_)),
        statement_(other.statement_ == &other.own_ ? &own_ : other.statement_),
        error_(std::move(other.error_)),
        row_(other.row_) {
    other.statement_ = nullptr;
  }
  QueryRows& operator=(QueryRows&&) = delete;
  ~QueryRows() {
    if (statement_ != nullptr && statement_ != &own_) statement_->Reset();
  }

  // Reads the next row. False: there is none, or an error.
  bool Next() {
    if (statement_ == nullptr) return false;
    Result<bool> has_row = statement_->Step();
    if (!has_row) {
      error_ = std::make_unique<Error>(std::move(has_row).error());
      return false;
    }
    if (*has_row) row_.Read(*statement_);
    return *has_row;
  }
  const Row& row() const { return row_; }
  // After Next() was false: the error that ended the rows, or nullptr.
  std::unique_ptr<Error> TakeError() { return std::move(error_); }
  // The same as a value.
  Result<void> Ended() {
    if (error_) return tl::unexpected<Error>(std::move(*TakeError()));
    return {};
  }

 private:
  Statement own_;
  Statement* statement_ = nullptr;
  std::unique_ptr<Error> error_;
  Row row_ = {};
};

// Rows as a range that is read once, for base/fields.h. After it, Ended() of the rows is asked.
template <typename Row>
class EachRow {
 public:
  struct End {};
  struct Iterator {
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    const Row& operator*() const { return rows->row(); }
    Iterator& operator++() {
      has_row = rows->Next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(End) const { return !has_row; }

    QueryRows<Row>* rows = nullptr;
    bool has_row = false;
  };

  explicit EachRow(QueryRows<Row>& rows) : rows_(&rows) {}
  Iterator begin() const { return {rows_, rows_->Next()}; }
  End end() const { return {}; }

 private:
  QueryRows<Row>* rows_;
};

// Runs a query. An error of preparing it ends the rows.
template <typename Row>
QueryRows<Row> Query(Database& database, const typename Row::Parameters& parameters = {}) {
  Result<Statement> statement = database.Prepare(Row::Sql(parameters));
  if (!statement) return QueryRows<Row>(std::move(statement).error());
  Row::Bind(parameters, *statement);
  return QueryRows<Row>(std::move(*statement));
}

// As Query, of a statement that the database keeps: for a query that is run for each log or graph.
// Its rows must end before it is run again. Not for queries with parameters that are SQL.
template <typename Row>
QueryRows<Row> KeptQuery(Database& database, const typename Row::Parameters& parameters) {
  Result<Statement*> statement = database.PrepareKept(std::string(Row::kSql));
  if (!statement) return QueryRows<Row>(std::move(statement).error());
  Row::Bind(parameters, **statement);
  return QueryRows<Row>(*statement);
}

// A query that is run many times: prepared once. Its rows must end before the next Run. Not for
// queries with parameters that are SQL.
template <typename Row>
class PreparedQuery {
 public:
  static Result<PreparedQuery> Make(Database& database) {
    ASSIGN_OR_RETURN(Statement statement, database.Prepare(Row::kSql));
    return PreparedQuery(std::move(statement));
  }
  QueryRows<Row> Run(const typename Row::Parameters& parameters) {
    statement_.Reset();
    Row::Bind(parameters, statement_);
    return QueryRows<Row>(&statement_);
  }

 private:
  explicit PreparedQuery(Statement statement) : statement_(std::move(statement)) {}
  Statement statement_;
};

// The first row of a query and what its text belongs to: a pointer to the row, nullptr if there is
// none.
template <typename Row>
class FirstRow {
 public:
  explicit FirstRow(QueryRows<Row> rows) : rows_(std::move(rows)), has_row_(rows_.Next()) {}
  explicit operator bool() const { return has_row_; }
  const Row* operator->() const { return &rows_.row(); }
  const Row& operator*() const { return rows_.row(); }
  std::unique_ptr<Error> TakeError() { return rows_.TakeError(); }

 private:
  QueryRows<Row> rows_;
  bool has_row_;
};

// ASSIGN_OR_RETURN(const FirstRow<RankWithLog> first, First(Query<RankWithLog>(…)));
template <typename Row>
Result<FirstRow<Row>> First(QueryRows<Row> rows) {
  FirstRow<Row> first(std::move(rows));
  if (const std::unique_ptr<Error> error = first.TakeError())
    return tl::unexpected<Error>(std::move(*error));
  return first;
}

// Runs a query without rows, as an UPDATE.
template <typename Command>
Result<void> Execute(Database& database, const typename Command::Parameters& parameters = {}) {
  ASSIGN_OR_RETURN(Statement statement, database.Prepare(Command::Sql(parameters)));
  Command::Bind(parameters, statement);
  return statement.Run();
}

// The same, prepared once.
template <typename Command>
class PreparedCommand {
 public:
  static Result<PreparedCommand> Make(Database& database) {
    ASSIGN_OR_RETURN(Statement statement, database.Prepare(Command::kSql));
    return PreparedCommand(std::move(statement));
  }
  Result<void> Run(const typename Command::Parameters& parameters) {
    statement_.Reset();
    Command::Bind(parameters, statement_);
    return statement_.Run();
  }

 private:
  explicit PreparedCommand(Statement statement) : statement_(std::move(statement)) {}
  Statement statement_;
};

}  // namespace tlparse

// The loop over the rows of a query, in a function that returns a Result: an error of the database
// returns from it.
#define FOR_EACH_ROW(declaration, ...)                        \
  FOR_EACH_ROW_INNER(TLPARSE_CONCAT(tlparse_rows_, __LINE__), \
                     TLPARSE_CONCAT(tlparse_error_, __LINE__), declaration, __VA_ARGS__)
#define FOR_EACH_ROW_INNER(rows, error, declaration, ...)             \
  for (auto rows = (__VA_ARGS__);;)                                   \
    if (!rows.Next()) {                                               \
      if (const auto error = rows.TakeError())                        \
        return ::tl::unexpected<::tlparse::Error>(std::move(*error)); \
      break;                                                          \
    } else if (declaration = rows.row(); true) /* the body follows */
