// Ends the connection to a server that sends headers without end, which httplib would keep.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace tlparse {

class HeaderGuard {
 public:
  HeaderGuard() = default;
  ~HeaderGuard();
  HeaderGuard(const HeaderGuard&) = delete;
  HeaderGuard& operator=(const HeaderGuard&) = delete;

  // The connection that is used from now on.
  void SetSocket(int socket);
  // From the request to the end of the headers of its answer.
  void Begin();
  void End();

 private:
  void Watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  int socket_ = -1;
  std::uint64_t received_before_ = 0;
  bool is_waiting_ = false;
  bool is_over_ = false;
};

}  // namespace tlparse
