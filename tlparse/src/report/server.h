// Serves the viewer over HTTP, with the data of a database, or of several to be compared: each
// request may name one by its number (db=2, the first is 1).
//
//   GET  /                          the page
//   GET  /api/chunk/<name>[?run=N]  one chunk of data, as in a static page (report/viewer/data.h)
//   GET  /api/timeline.json[?run=N] the run for Perfetto (report/timeline/timeline.h)
//   POST /api/sql                   {"sql": "SELECT …"};
//                                   answer: schemas/json/viewer/sql_answer.schema.json
//
// and while a job is watched (ServerOptions::live), for a page that changes:
//
//   GET  /api/live?after=N&page=P   schemas/json/viewer/live.schema.json; waits up to two seconds
//                                   for a state whose sequence is not N. P: any name of the page
//   GET  /api/chunks?names=A,B,…    chunks of the followed run, all of one state of the database:
//                                   {"state", "revision", "looked_at_us", "chunks": {name: chunk},
//                                   "errors": {name: text}}; equal "state"s: the same rows
//
// Nothing else is served: a path of a request is never used as the path of a file. The server only
// reads. It refuses requests whose Host is not this server (another page that rebinds its name to
// 127.0.0.1), whose Origin is another page, or, where other machines reach it, that do not know the
// token (access.h); and in the SQL console everything that is not a query, takes too long or returns
// too much. While four queries run, another one gets status 503,
// so that slow queries do not stop the page.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tlparse {

class LiveState;

struct ServerOptions {
  std::string host = "127.0.0.1";  // address to listen on
  std::string token;               // TokenFor(host)
  int port = 0;                    // 0: any that is free
  std::int64_t sql_row_limit = 20000;
  std::int64_t sql_byte_limit = std::int64_t{32} << 20;
  int sql_time_limit_ms = 30000;
  std::vector<std::string> beside;         // paths of further databases
  std::optional<std::int64_t> world_size;  // how many ranks there should be
  LiveState* live = nullptr;  // not null: of a job that is watched; outlives the server
};

class ViewerServer {
 public:
  // Binds the port; connections wait from then on. kNotATrace, kNotFound, kIo: the database cannot
  // be read or holds no run; kIo: the port is taken.
  static Result<std::unique_ptr<ViewerServer>> Create(const std::string& database_path,
                                                      const ServerOptions& options);
  ~ViewerServer();

  int port() const;
  // With the token (ServerUrl).
  std::string url() const;
  // Serves until Stop, which another thread may call.
  void Run();
  void Stop();
  // Closes every connection to the database and refuses what needs one (503), until Resume.
  void Release();
  void Resume();

 private:
  class Impl;
  explicit ViewerServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tlparse
