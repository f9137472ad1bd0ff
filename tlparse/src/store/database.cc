#include "store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/file_lock.h"
#include "store/schema.h"
#include "store/write_behind.h"

namespace tlparse {

// Prepared statements that are not in use, by their text.
class StatementPool {
 public:
  StatementPool() = default;
  ~StatementPool() { Clear(); }
  StatementPool(const StatementPool&) = delete;  // owns its statements
  StatementPool& operator=(const StatementPool&) = delete;

  // nullptr: there is none.
  sqlite3_stmt* Take(std::string_view sql) {
    const auto found = idle_.find(sql);
    if (found == idle_.end()) return nullptr;
    sqlite3_stmt* const statement = found->second;
    idle_.erase(found);
    return statement;
  }
  void Put(sqlite3_stmt* statement) {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    if (idle_.size() >= kMost) Clear();
    idle_.emplace(sqlite3_sql(statement), statement);
  }

 private:
  static constexpr std::size_t kMost = 300;  // texts that hold ids may be any number

  void Clear() {
    for (const auto& [sql, statement] : idle_) sqlite3_finalize(statement);
    idle_.clear();
  }
  std::unordered_multimap<std::string_view, sqlite3_stmt*> idle_;  // by the text that SQLite keeps
};

void StatementEnd::operator()(sqlite3_stmt* statement) const {
  pool != nullptr ? pool->Put(statement) : static_cast<void>(sqlite3_finalize(statement));
}

void Statement::Bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
}
void Statement::Bind(int index, double value) {
  sqlite3_bind_double(statement_.get(), index, value);
}
void Statement::Bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data() == nullptr ? "" : text.data(),
                      text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void Statement::BindBlob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index, bytes.data() == nullptr ? "" : bytes.data(),
                      bytes.size(), SQLITE_STATIC);
}
void Statement::BindNull(int index) { sqlite3_bind_null(statement_.get(), index); }

Error Statement::LastError() const {
  return Error{ErrorCode::kDatabase,
               fmt::format("SQLite: {}", sqlite3_errmsg(sqlite3_db_handle(statement_.get())))};
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  Error error = LastError();
  sqlite3_reset(statement_.get());
  return tl::unexpected<Error>(std::move(error));
}

Result<void> Statement::Run() {
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, Step());
    if (!has_row) return {};
  }
}

void Statement::Reset() { sqlite3_reset(statement_.get()); }
int Statement::column_count() const { return sqlite3_column_count(statement_.get()); }
std::string_view Statement::ColumnName(int column) const {
  const char* name = sqlite3_column_name(statement_.get(), column);
  return name == nullptr ? std::string_view() : name;
}
int Statement::ColumnType(int column) const {
  return sqlite3_column_type(statement_.get(), column);
}
std::int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
double Statement::Real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}
std::optional<std::int64_t> Statement::OptionalInt(int column) const {
  return IsNull(column) ? std::nullopt : std::optional(Int(column));
}
std::optional<double> Statement::OptionalReal(int column) const {
  return IsNull(column) ? std::nullopt : std::optional(Real(column));
}
std::optional<std::string> Statement::OptionalText(int column) const {
  return IsNull(column) ? std::nullopt : std::optional(std::string(Text(column)));
}

namespace {

// Bulk load: no other process opens the file before it is renamed, so there is nothing to roll back. The
// small page cache keeps the pages being filled in the processor's cache. Pages of kPageBytes. What an
// index of millions of rows sorts goes to a file.
constexpr char kBulkLoadPragmas[] =
    "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA "
    "locking_mode = EXCLUSIVE;PRAGMA cache_size = -4096; PRAGMA temp_store = FILE;";
constexpr char kAppendPragmas[] =
    "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; PRAGMA "
    "temp_store = MEMORY;";
// Mapped pages need no cache of SQLite's.
constexpr char kReadPragmas[] =
    "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 2147418112;";

// One process at a time adds to a database: each gives out the ids that follow the last.
Result<FileDescriptor> LockForAppending(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.is_open() && !LockBytes(file.get(), 1) && (errno == EAGAIN || errno == EACCES)) {
    return Fail(ErrorCode::kIo,
                fmt::format("cannot write the database '{}': another tlparse is writing it", path));
  }
  return file;
}

}  // namespace

Database::Database(sqlite3* connection, std::string path)
    : connection_(connection), path_(std::move(path)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::Open(const std::string& path, Mode mode) {
  // SQLite counts its memory under one lock, for which the threads of a report would wait. Nobody
  // reads the count.
  [[maybe_unused]] static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  int flags = SQLITE_OPEN_NOMUTEX;
  flags |= mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::kBulkLoad) flags |= SQLITE_OPEN_CREATE;
  if (mode != Mode::kBulkLoad && access(path.c_str(), R_OK) != 0) {
    return Fail(access(path.c_str(), F_OK) != 0 ? ErrorCode::kNotFound : ErrorCode::kIo,
                fmt::format("cannot open the database '{}': {}", path,
                            access(path.c_str(), F_OK) != 0 ? "there is no such file"
                                                            : "it is not readable"));
  }
  FileDescriptor lock;
  if (mode == Mode::kAppend) {
    ASSIGN_OR_RETURN(lock, LockForAppending(path));
  }
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags,
                                   mode == Mode::kBulkLoad ? WriteBehindVfs() : nullptr);
  Database database(connection, path);
  database.lock_ = std::move(lock);
  if (code == SQLITE_CANTOPEN && mode == Mode::kBulkLoad) {
    return Fail(ErrorCode::kIo, fmt::format("cannot write the database '{}': {}", path,
                                            std::strerror(sqlite3_system_errno(connection))));
  }
  if (code != SQLITE_OK) return tl::unexpected<Error>(database.LastError("opening"));
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, 10'000);
  if (mode == Mode::kReadOnly || mode == Mode::kAppend) {
    Result<void> check = CheckSchema(database);
    if (!check) {
      if (check.error().code == ErrorCode::kDatabase) {
        return Fail(ErrorCode::kNotATrace,
                    fmt::format("'{}' is not a database: {}", path, sqlite3_errmsg(connection)));
      }
      return tl::unexpected<Error>(std::move(check).error());
    }
  }
  // A database that was watched has a write-ahead log, which stays while others read it.
  if (mode == Mode::kAppend) (void)database.Execute("PRAGMA journal_mode = DELETE").has_value();
  RETURN_IF_ERROR(database.Execute(mode == Mode::kBulkLoad ? kBulkLoadPragmas
                                   : mode == Mode::kAppend ? kAppendPragmas
                                                           : kReadPragmas));
  return database;
}

Result<void> Database::ReadOn(std::string path) {
  path_ = std::move(path);
  ResetKept();
  RETURN_IF_ERROR(Execute("PRAGMA locking_mode = NORMAL;"));
  RETURN_IF_ERROR(Execute(kReadPragmas));
  return Execute("SELECT 1 FROM sqlite_schema LIMIT 1");  // unlocks the file
}

Result<bool> Database::IsSmall() {
  constexpr std::int64_t kSmallBytes = 8 << 20;
  ASSIGN_OR_RETURN(const std::int64_t pages, QueryInt("PRAGMA page_count"));
  return pages * kPageBytes < kSmallBytes;
}

Error Database::LastError(std::string_view doing) const {
  if ((sqlite3_errcode(connection_.get()) & 0xff) == SQLITE_BUSY) {
    return Error{ErrorCode::kIo,
                 fmt::format("another program has locked the database '{}'", path_)};
  }
  return Error{ErrorCode::kDatabase,
               fmt::format("{} '{}': {}", doing, path_, sqlite3_errmsg(connection_.get()))};
}

struct Database::LockWaiter {
  LockWait wait;
  std::chrono::steady_clock::time_point since;
};

void Database::WaitForLocks(LockWait wait) {
  waiter_ = std::make_unique<LockWaiter>(LockWaiter{std::move(wait), {}});
  const auto call = [](void* waiter, int count) {
    auto& self = *static_cast<LockWaiter*>(waiter);
    const auto now = std::chrono::steady_clock::now();
    if (count == 0) self.since = now;
    if (!self.wait(std::chrono::duration_cast<std::chrono::milliseconds>(now - self.since)))
      return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(count < 10 ? 5 : 50));
    return 1;
  };
  sqlite3_busy_handler(connection_.get(), call, waiter_.get());
}

void Database::KeepStatements() {
  if (pool_ == nullptr) pool_ = std::make_unique<StatementPool>();
}

Result<Statement> Database::Prepare(std::string_view sql) {
  if (pool_ != nullptr) {
    if (sqlite3_stmt* const known = pool_->Take(sql); known != nullptr)
      return Statement(known, pool_.get());
  }
  ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Compile(sql));
  return Statement(statement, pool_.get());
}

Result<sqlite3_stmt*> Database::Compile(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement,
                         nullptr) != SQLITE_OK) {
    const std::string message = sqlite3_errmsg(connection_.get());
    if (std::optional<Error> why = WhyMissing(*this, message))
      return tl::unexpected<Error>(std::move(*why));
    return Fail(ErrorCode::kDatabase, fmt::format("SQL: {}", message));
  }
  return statement;
}

Result<Statement*> Database::PrepareKept(const std::string& sql) {
  const auto [entry, is_new] = kept_.try_emplace(sql);
  if (is_new) {
    Result<sqlite3_stmt*> statement = Compile(sql);
    if (!statement) {
      kept_.erase(entry);
      return tl::unexpected<Error>(std::move(statement).error());
    }
    entry->second = Statement(*statement, nullptr);
  }
  entry->second.Reset();
  return &entry->second;
}

Result<void> Database::Execute(std::string_view sql) {
  const std::string text(sql);
  if (sqlite3_exec(connection_.get(), text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return tl::unexpected<Error>(LastError("writing"));
  }
  return {};
}

Result<std::int64_t> Database::QueryInt(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool has_row, statement.Step());
  return has_row ? statement.Int(0) : 0;
}

Result<std::string> Database::QueryText(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool has_row, statement.Step());
  return has_row ? std::string(statement.Text(0)) : std::string();
}

Result<std::string> Database::QueryText(const std::string& sql, std::int64_t id) {
  ASSIGN_OR_RETURN(Statement* const statement, PrepareKept(sql));
  statement->Bind(1, id);
  ASSIGN_OR_RETURN(const bool has_row, statement->Step());
  std::string text(has_row ? statement->Text(0) : std::string_view());
  statement->Reset();
  return text;
}

}  // namespace tlparse
