// The viewer over HTTP, with the database behind it.
//
//   GET  /                          the page
//   GET  /api/chunk/<name>[?run=N]  one chunk of data, the same document as in a static page
//   (report/viewer/data.h) GET  /api/chromium_events.json  the events of all ranks, for Perfetto
//   POST /api/sql                   {"sql": "SELECT …"}; answer:
//   schemas/json/viewer/sql_answer.schema.json
//
// Nothing else is served: no path of a request ever becomes the path of a file. The server only
// reads. What it refuses: requests whose Host is not this server (a page elsewhere that rebinds its
// name to 127.0.0.1), whose Origin is another page, and in the SQL console everything that is not a
// query, takes too long or answers too much; with 503 a query while four are under way, so that
// slow ones do not stop the page.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

struct ServerOptions {
  std::string host = "127.0.0.1";  // address to listen on; loopback unless somebody asks otherwise
  int port = 0;                    // 0: any that is free
  std::int64_t sql_row_limit = 20000;
  std::int64_t sql_byte_limit = std::int64_t{32} << 20;
  int sql_time_limit_ms = 30000;
};

class ViewerServer {
 public:
  // Binds the port; connections wait from then on. kNotATrace, kNotFound, kIo: the database cannot
  // be read or holds no run; kIo: the port is taken.
  static Result<std::unique_ptr<ViewerServer>> Create(const std::string& database_path,
                                                      const ServerOptions& options);
  ~ViewerServer();

  int port() const;
  // "http://127.0.0.1:8577/"
  std::string url() const;
  // Serves until Stop, which another thread may call.
  void Run();
  void Stop();

 private:
  class Impl;
  explicit ViewerServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether a request with this Host header was meant for a server that listens on `host`:`port`.
// Names are accepted only if they cannot be made to point here by somebody else: localhost,
// addresses, and `host` itself.
bool IsOwnHost(std::string_view host_header, std::string_view host, int port);

}  // namespace tlparse
