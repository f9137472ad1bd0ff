#include "report/consoles.h"

#include <fmt/format.h>

#include <utility>

#include "report/viewer/sql.h"
#include "store/database.h"

namespace tlparse {

namespace {

constexpr std::size_t kRunningQueries = 2;
constexpr std::size_t kWaitingQueries = 2;

}  // namespace

struct Consoles::Connection {
  Connection(Database opened, const ServerOptions& options)
      : database(std::move(opened)), console(database, options) {}
  Database database;
  SqlConsole console;
};

Consoles::Consoles(std::string database_path, const ServerOptions& options)
    : path_(std::move(database_path)), options_(options) {}
Consoles::~Consoles() = default;

Result<std::string> Consoles::Run(std::string_view sql) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Take());
  Result<std::string> answer = connection->console.Run(sql);
  const std::lock_guard lock(mutex_);
  std::erase(running_, connection->database.handle());
  idle_.push_back(std::move(connection));
  changed_.notify_all();
  return answer;
}

Result<std::unique_ptr<Consoles::Connection>> Consoles::Take() {
  std::unique_lock lock(mutex_);
  if (running_.size() == kRunningQueries && waiting_ == kWaitingQueries) {
    return Fail(ErrorCode::kRefused,
                fmt::format("the console is busy with {} queries; try again when one has ended",
                            kRunningQueries + kWaitingQueries));
  }
  ++waiting_;
  changed_.wait(lock, [this] { return is_stopped_ || running_.size() < kRunningQueries; });
  --waiting_;
  if (is_stopped_) return Fail(ErrorCode::kRefused, "the server is ending");
  std::unique_ptr<Connection> connection;
  if (idle_.empty()) {
    ASSIGN_OR_RETURN(Database opened, Database::Open(path_, Database::Mode::kReadOnly));
    connection = std::make_unique<Connection>(std::move(opened), options_);
  } else {
    connection = std::move(idle_.back());
    idle_.pop_back();
  }
  running_.push_back(connection->database.handle());
  return connection;
}

void Consoles::Stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (sqlite3* database : running_) sqlite3_interrupt(database);
  changed_.notify_all();
}

void Consoles::Release() {
  Stop();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return running_.empty(); });
  idle_.clear();
}

void Consoles::Resume() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = false;
}

}  // namespace tlparse
