// The page of `tlparse watch --serve`: a server that runs beside the watch and shows its state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "report/live_state.h"
#include "report/server.h"

namespace tlparse {

struct ServeAddress {
  std::optional<std::string> host;
  std::optional<int> port;
};
// "", "PORT", "HOST" or "HOST:PORT", an IPv6 address in brackets; kUsage with what is wrong.
Result<ServeAddress> ParseServeAddress(const std::string& text);

class WatchPage {
 public:
  // Starts to serve, in threads that block all signals. Without a port in `address`: the usual one,
  // or any if that is taken. The database must hold the run.
  static Result<std::unique_ptr<WatchPage>> Start(const std::string& address,
                                                  const std::string& source,
                                                  const std::string& database_path,
                                                  std::int64_t run_id);
  ~WatchPage();
  WatchPage(const WatchPage&) = delete;  // a thread refers to it
  WatchPage& operator=(const WatchPage&) = delete;

  LiveState& state() { return *state_; }
  std::string url() const { return server_->url(); }
  // Closes the server's connections, so that the database can become one file.
  void BeginEnd();
  // The database is whole; open pages load it a last time and say why the watch ended and what
  // stays. `index`: the page of the report, empty if there is none.
  void End(const std::string& why, const std::string& index);

 private:
  WatchPage() = default;
  std::string database_path_;
  std::unique_ptr<LiveState> state_;
  std::unique_ptr<ViewerServer> server_;
  std::thread thread_;
};

}  // namespace tlparse
