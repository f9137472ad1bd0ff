#include "otel/http_post.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace libtrace::otel {
namespace {

using std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(steady_clock::time_point deadline) : deadline_(deadline) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool Connect(const std::string& host, uint16_t port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
    bool is_connected = false;
    for (const addrinfo* one = found; one != nullptr && !is_connected; one = one->ai_next)
      is_connected = ConnectTo(*one);
    freeaddrinfo(found);
    return is_connected;
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
      } else if ((errno != EAGAIN && errno != EINTR) || !Wait(POLLOUT)) {
        return false;
      }
    }
    return true;
  }

  // Until the other side closes.
  std::string ReadAll(size_t max_size) {
    std::string text;
    char buffer[4096];
    while (text.size() < max_size) {
      const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
      if (count > 0) {
        text.append(buffer, static_cast<size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !Wait(POLLIN)) {
        break;
      }
    }
    return text;
  }

 private:
  bool ConnectTo(const addrinfo& address) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return false;
    if (connect(fd_, address.ai_addr, address.ai_addrlen) == 0) return true;
    int error = 0;
    socklen_t size = sizeof error;
    return errno == EINPROGRESS && Wait(POLLOUT) &&
           getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  bool Wait(short events) {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd waiting{fd_, events, 0};
      const int result = poll(&waiting, 1, static_cast<int>(left.count()));
      if (result > 0) return true;
      if (result == 0 || errno != EINTR) return false;
    }
  }

  const steady_clock::time_point deadline_;
  int fd_ = -1;
};

}  // namespace

HttpAnswer HttpPost(const std::string& host, uint16_t port, std::string_view path,
                    std::string_view json, std::chrono::milliseconds timeout) {
  constexpr size_t kMaxAnswer = size_t{64} << 10;
  Socket socket(steady_clock::now() + timeout);
  if (!socket.Connect(host, port)) return {};
  std::string head = "POST ";
  head.append(path).append(" HTTP/1.1\r\nHost: ").append(host).append(":");
  head.append(std::to_string(port)).append("\r\nContent-Type: application/json\r\n");
  head.append("Content-Length: ").append(std::to_string(json.size()));
  head.append("\r\nConnection: close\r\n\r\n");
  if (!socket.Send(head) || !socket.Send(json)) return {};
  const std::string text = socket.ReadAll(kMaxAnswer);
  HttpAnswer answer;
  constexpr std::string_view kVersion = "HTTP/1.";
  if (text.compare(0, kVersion.size(), kVersion) != 0 || text.size() < 12) return answer;
  for (size_t i = 9; i < 12; ++i) {
    if (text[i] < '0' || text[i] > '9') return {};
    answer.status = answer.status * 10 + (text[i] - '0');
  }
  const size_t body = text.find("\r\n\r\n");
  if (body != std::string::npos) answer.body = text.substr(body + 4);
  return answer;
}

}  // namespace libtrace::otel
