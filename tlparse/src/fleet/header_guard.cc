#include "fleet/header_guard.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>

namespace tlparse {
namespace {

constexpr std::uint64_t kMostHeaderBytes = 1 << 20;

// 0: unknown.
std::uint64_t BytesReceived(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  const bool is_known =
      socket >= 0 && getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
      size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
  return is_known ? info.tcpi_bytes_received : 0;
}

}  // namespace

HeaderGuard::~HeaderGuard() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void HeaderGuard::SetSocket(int socket) {
  const std::lock_guard lock(mutex_);
  socket_ = socket;
  received_before_ = 0;
}

void HeaderGuard::Begin() {
  {
    const std::lock_guard lock(mutex_);
    is_waiting_ = true;
    received_before_ = BytesReceived(socket_);
    if (!thread_.joinable()) thread_ = std::thread(&HeaderGuard::Watch, this);
  }
  changed_.notify_all();
}

void HeaderGuard::End() {
  const std::lock_guard lock(mutex_);
  is_waiting_ = false;
}

void HeaderGuard::Watch() {
  constexpr std::chrono::milliseconds kInterval{20};
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    changed_.wait(lock, [&] { return is_waiting_ || is_over_; });
    while (is_waiting_ && !is_over_) {
      if (BytesReceived(socket_) > received_before_ + kMostHeaderBytes)
        shutdown(socket_, SHUT_RDWR);
      changed_.wait_for(lock, kInterval);
    }
  }
}

}  // namespace tlparse
