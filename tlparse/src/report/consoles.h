// The SQL console's connections to the database. Queries are few at a time, so that however slow
// they are, threads and cores are left for the page. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/server.h"

struct sqlite3;

namespace tlparse {

class Consoles {
 public:
  Consoles(std::string database_path, const ServerOptions& options);
  ~Consoles();

  // The answer of SqlConsole. kRefused: too many queries are under way, or Stop was called.
  Result<std::string> Run(std::string_view sql);
  // Ends the queries that are under way and refuses others.
  void Stop();
  // Stop, and returns when no connection to the database is left. Resume allows queries again.
  void Release();
  void Resume();

 private:
  struct Connection;
  Result<std::unique_ptr<Connection>> Take();

  std::string path_;
  ServerOptions options_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::vector<sqlite3*> running_;
  std::size_t waiting_ = 0;
  bool is_stopped_ = false;
};

}  // namespace tlparse
