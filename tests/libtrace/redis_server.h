// A real redis-server (Debian's), started by a test on a socket of its own.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "libtrace/cache/cache_store.h"
#include "tests/libtrace/log_text.h"

namespace libtrace::testing {

// False, with a line that says so, where no redis-server is installed; `program` another one.
bool HasProgram(const std::string& program = "redis-server");

class RedisServer {
 public:
  enum class Kind { kUnixSocket, kTls };
  // Ends the running test if the server does not start.
  explicit RedisServer(Kind kind = Kind::kUnixSocket);
  ~RedisServer() { Kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  void Start();
  void Kill();
  // The server answers nothing until it may go on.
  void Pause();
  void GoOn();

  // Of a client that may do everything.
  RedisOptions options() const;
  std::shared_ptr<CacheStore> Store() const { return Store(options()); }
  static std::shared_ptr<CacheStore> Store(const RedisOptions& options);
  // redis-cli's output.
  std::string Ask(const std::string& command) const;

  const TemporaryDirectory& directory() const { return directory_; }

 private:
  void MakeCertificates() const;
  std::vector<std::string> Arguments() const;

  TemporaryDirectory directory_;
  Kind kind_;
  std::string socket_;
  int port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace libtrace::testing
