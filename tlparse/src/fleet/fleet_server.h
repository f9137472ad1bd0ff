// Serves a fleet's history over HTTP: trends with one dot per run; a dot pulls its run and opens
// its page.
//
//   GET /                       the jobs
//   GET /job?name=J             charts of its runs, the functions that took longest
//   GET /function?job=J&name=F  compile time of a function in each run, where it changed, and why
//   GET /run/UUID               redirects to the page of that run, on a port of its own
//
// It only reads, and answers only requests whose Host is this server (IsOwnHost). Queries use the
// account of the user who started it: everyone who can reach the port reads with that account.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "report/server.h"

namespace tlparse {

struct FleetServerOptions {
  std::vector<ClickHouseOptions> servers;
  std::int64_t since_day = 0;  // runs of that day and later; days since 1970
  ServerOptions viewer;        // host and port of this server; the rest for the pages of runs
};

class FleetServer {
 public:
  // Queries the servers once and binds the port. kIo: they are not reached, or the port is in use.
  static Result<std::unique_ptr<FleetServer>> Create(const FleetServerOptions& options);
  ~FleetServer();

  std::string url() const;
  // Serves until Stop, which another thread may call. The eight pulled runs that were opened last
  // are kept; all are removed at the end.
  void Run();
  void Stop();

 private:
  class Impl;
  explicit FleetServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tlparse
