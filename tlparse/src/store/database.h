// A thin owner of an SQLite connection and its statements. SQLite's codes become Errors here and
// nowhere else.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tlparse {

class Database;

class StatementPool;

// Ends the use of a statement: it goes to the pool, if there is one.
struct StatementEnd {
  StatementEnd() : pool(nullptr) {}
  explicit StatementEnd(StatementPool* to) : pool(to) {}
  void operator()(sqlite3_stmt* statement) const;
  StatementPool* pool;
};

// A prepared statement. Not thread-safe; must not outlive its Database.
class Statement {
 public:
  Statement() = default;

  // Binds parameter `index` (1-based). Text must stay alive until the next Reset or destruction.
  void Bind(int index, std::int64_t value);
  void Bind(int index, double value);
  void Bind(int index, std::string_view text);
  template <std::same_as<std::string> T>
  void Bind(int index, T&& temporary) = delete;
  void BindBlob(int index, std::string_view bytes);
  void BindNull(int index);
  template <typename T>
  void Bind(int index, const std::optional<T>& value) {
    value ? Bind(index, *value) : BindNull(index);
  }

  // True: there is a row. False: done; the statement is reset.
  Result<bool> Step();
  // Runs to the end and resets.
  Result<void> Run();
  void Reset();

  // Columns of the current row, 0-based. Views live until the next Step or Reset.
  int column_count() const;
  std::string_view ColumnName(int column) const;
  // SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL
  int ColumnType(int column) const;
  bool IsNull(int column) const { return ColumnType(column) == SQLITE_NULL; }
  std::int64_t Int(int column) const;
  double Real(int column) const;
  std::string_view Text(int column) const;  // bytes of TEXT or BLOB; empty for NULL
  std::optional<std::int64_t> OptionalInt(int column) const;
  std::optional<double> OptionalReal(int column) const;
  std::optional<std::string> OptionalText(int column) const;

  sqlite3_stmt* handle() const { return statement_.get(); }

 private:
  friend class Database;
  Statement(sqlite3_stmt* statement, StatementPool* pool)
      : statement_(statement, StatementEnd(pool)) {}
  Error LastError() const;

  std::unique_ptr<sqlite3_stmt, StatementEnd> statement_;
};

// One connection. Not thread-safe: a second thread opens its own.
class Database {
 public:
  enum class Mode {
    kReadOnly,  // must exist and be a tlparse database of a schema version we know (kNotATrace
                // otherwise)
    kBulkLoad,  // new file, no journal: the caller renames it when done
    kAppend,    // existing tlparse database, rollback journal: a killed process leaves the old
                // content; kIo if another process has it open in this mode
  };
  static Result<Database> Open(const std::string& path, Mode mode);

  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // A complete database that was opened with kBulkLoad, and is at `path` now, is read from here on, as
  // if it had been opened with kReadOnly. SQLite keeps the schema that it has read.
  Result<void> ReadOn(std::string path);

  Result<Statement> Prepare(std::string_view sql);
  // From now on statements that are not used any more are kept, and Prepare returns one of the same
  // text: for answers that are made again and again.
  void KeepStatements();
  // While another program holds a lock of the database, `wait` is called again and again with the
  // time that has passed; false: the statement fails. By default it fails after ten seconds.
  using LockWait = std::function<bool(std::chrono::milliseconds)>;
  void WaitForLocks(LockWait wait);
  // As Prepare, cached: the statement is returned reset, with its earlier bindings. Not to be used
  // while an earlier use continues. Lives as long as the database.
  Result<Statement*> PrepareKept(const std::string& sql);
  // Ends the uses of all that are kept, and the read transactions that they hold.
  void ResetKept() {
    for (auto& [sql, statement] : kept_) statement.Reset();
  }
  // One or several statements without parameters; rows are dropped.
  Result<void> Execute(std::string_view sql);
  // The first column of the first row of a query; 0 if there is no row or it is NULL.
  Result<std::int64_t> QueryInt(std::string_view sql);
  Result<std::string> QueryText(std::string_view sql);
  // The same for parameter 1 = `id`, of a statement that is kept.
  Result<std::string> QueryText(const std::string& sql, std::int64_t id);

  // Of a small database a report takes less time than a second connection takes to be opened.
  Result<bool> IsSmall();

  sqlite3* handle() const { return connection_.get(); }
  const std::string& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  Database(sqlite3* connection, std::string path);
  Error LastError(std::string_view doing) const;
  Result<sqlite3_stmt*> Compile(std::string_view sql);

  struct LockWaiter;
  std::unique_ptr<LockWaiter> waiter_;  // refers to no other member
  FileDescriptor lock_;                 // kAppend; closed after the connection
  std::unique_ptr<sqlite3, Closer> connection_;
  std::string path_;
  std::unique_ptr<StatementPool> pool_;
  std::unordered_map<std::string, Statement> kept_;  // finalized before the connection closes
};

}  // namespace tlparse
