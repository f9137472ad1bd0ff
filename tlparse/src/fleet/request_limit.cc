#include "fleet/request_limit.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "base/worker_threads.h"

namespace tlparse {
namespace {

constexpr std::uint64_t kMostHeaderBytes = 1 << 20;

struct Counts {
  std::uint64_t received = 0;
  std::uint64_t acknowledged = 0;
};

// Zeros: unknown.
Counts CountsOf(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  const bool is_known =
      socket >= 0 && getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
      size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
  return is_known ? Counts{info.tcpi_bytes_received, info.tcpi_bytes_acked} : Counts{};
}

// So that a connection to a machine that was restarted does not look like a server that works.
void KeepAlive(int socket) {
  constexpr int kIsOn = 1, kIdleS = 30, kIntervalS = 10, kProbes = 3;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &kIsOn, sizeof(kIsOn));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleS, sizeof(kIdleS));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalS, sizeof(kIntervalS));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof(kProbes));
}

}  // namespace

RequestLimit::~RequestLimit() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RequestLimit::SetSocket(int socket) {
  KeepAlive(socket);
  const std::lock_guard lock(mutex_);
  socket_ = FileDescriptor(fcntl(socket, F_DUPFD_CLOEXEC, 0));
  received_before_ = 0;
  acknowledged_ = 0;
}

Result<void> RequestLimit::Begin(std::chrono::milliseconds silence, const std::string& id) {
  if (!thread_.joinable()) {
    ASSIGN_OR_RETURN(thread_, StartThread([this] { Watch(); }));
  }
  {
    const std::lock_guard lock(mutex_);
    ++request_;
    silence_ = silence;
    id_ = id;
    const Counts counts = CountsOf(socket_.get());
    received_before_ = counts.received;
    acknowledged_ = counts.acknowledged;
    is_under_way_ = true;
    has_headers_ = is_paused_ = false;
    ended_ = Ended::kNo;
    Prolong();
  }
  changed_.notify_all();
  return {};
}

void RequestLimit::HeadersCame() {
  const std::lock_guard lock(mutex_);
  has_headers_ = true;
  if (is_working_) Prolong();
}

void RequestLimit::PieceCame() {
  const std::lock_guard lock(mutex_);
  is_paused_ = true;
}

void RequestLimit::WaitForPiece() {
  const std::lock_guard lock(mutex_);
  is_paused_ = false;
  if (is_working_) Prolong();
}

RequestLimit::Ended RequestLimit::End() {
  const std::lock_guard lock(mutex_);
  is_under_way_ = false;
  return ended_;
}

void RequestLimit::Prolong() {
  constexpr std::chrono::milliseconds kLongestWait{30'000};
  const Clock::time_point now = Clock::now();
  deadline_ = now + silence_;
  ask_at_ = now + std::min(silence_ / 3, kLongestWait);
}

void RequestLimit::EndConnection(Ended why) {
  ended_ = why;
  shutdown(socket_.get(), SHUT_RDWR);
}

void RequestLimit::Ask(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t request = request_;
  const std::string id = id_;
  ask_at_ = Clock::time_point::max();
  lock.unlock();
  const bool is_working = is_working_(id);
  lock.lock();
  if (request != request_) return;
  const Clock::time_point deadline = deadline_;
  Prolong();
  if (!is_working) deadline_ = deadline;
}

void RequestLimit::Look(std::unique_lock<std::mutex>& lock) {
  // Again: a host with several addresses is connected to by one after the other.
  if (ended_ != Ended::kNo) return EndConnection(ended_);
  const Counts counts = CountsOf(socket_.get());
  if (!has_headers_ && counts.received > received_before_ + kMostHeaderBytes)
    return EndConnection(Ended::kHeaders);
  if (counts.acknowledged != acknowledged_) {
    acknowledged_ = counts.acknowledged;
    if (is_working_) Prolong();
  }
  if (is_paused_) return;
  const Clock::time_point now = Clock::now();
  if (now >= deadline_) return EndConnection(Ended::kSilent);
  if (is_working_ && now >= ask_at_) Ask(lock);
}

void RequestLimit::Watch() {
  constexpr std::chrono::milliseconds kInterval{20};
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    changed_.wait(lock, [&] { return is_under_way_ || is_over_; });
    while (is_under_way_ && !is_over_) {
      Look(lock);
      changed_.wait_for(lock, kInterval);
    }
  }
}

}  // namespace tlparse
