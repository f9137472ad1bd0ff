#include "core/cache/resp_connection.h"

#ifdef LIBTRACE_WITH_REDIS

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/errno_scope.h"
#include "core/signal_guard.h"

namespace libtrace::detail {
namespace {

constexpr uint64_t kMaxReplyBytes = uint64_t{512} << 20;
constexpr int64_t kMaxListSize = 1 << 20;
constexpr int kMaxDepth = 4;
constexpr size_t kMaxLineBytes = 64 << 10;
// A command whose bytes keep coming may take this many times the timeout.
constexpr int kMaxTimeouts = 100;

Status ConnectionFailed(std::string_view what, int error) {
  return Status::Error(std::string(what).append(": ").append(std::strerror(error)));
}

Status TlsFailed(std::string_view what) {
  char text[256] = "unknown error";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return Status::Error(std::string(what).append(": ").append(text));
}

Status Unexpected() { return Status::Error("Redis answers something unexpected"); }

bool ParseNumber(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

RespConnection::~RespConnection() {
  const ErrnoScope keeps_errno;
  if (tls_ != nullptr) SSL_free(tls_);
  if (tls_context_ != nullptr) SSL_CTX_free(tls_context_);
  if (fd_ >= 0) close(fd_);
}

// Until the socket is ready, for the timeout.
Status RespConnection::Wait(short events) {
  const auto until = std::min(Clock::now() + timeout_, give_up_at_);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd wanted{fd_, events, 0};
    const int count = poll(&wanted, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (count > 0) return {};
    if (count == 0) return Status::Error("Redis does not answer: timeout");
    if (errno != EINTR) return ConnectionFailed("Redis does not answer", errno);
  }
}

Status RespConnection::ConnectUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Status::Error("cannot connect to Redis: the path of the socket is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return {};
  const int error = errno;  // before the text is made, which may change it
  return ConnectionFailed("cannot connect to Redis at " + path, error);
}

Status RespConnection::ConnectTcp(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    return Status::Error("cannot connect to Redis at " + host + ": " + gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  int last_error = ECONNREFUSED;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (fd_ >= 0) close(fd_);
    fd_ = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) continue;
    if (connect(fd_, address->ai_addr, address->ai_addrlen) == 0) return {};
    last_error = errno;
    if (errno != EINPROGRESS) continue;
    socklen_t size = sizeof last_error;
    if (!Wait(POLLOUT).ok()) {
      last_error = ETIMEDOUT;
    } else if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &last_error, &size) == 0 && last_error == 0) {
      const int on = 1;
      setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return {};
    }
  }
  return ConnectionFailed("cannot connect to Redis at " + host + ":" + std::to_string(port),
                          last_error);
}

// After a call of TLS that gave `result`: waits for what it needs, or fails.
Status RespConnection::WaitForTls(int result, std::string_view what) {
  switch (SSL_get_error(tls_, result)) {
    case SSL_ERROR_WANT_READ:
      return Wait(POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return Wait(POLLOUT);
    case SSL_ERROR_ZERO_RETURN:
      return Status::Error("Redis closed the connection");
    default:
      break;
  }
  if (const long verified = SSL_get_verify_result(tls_); verified != X509_V_OK) {
    ERR_clear_error();
    return Status::Error(
        std::string(what).append(": ").append(X509_verify_cert_error_string(verified)));
  }
  return TlsFailed(what);
}

Status RespConnection::StartTls(const RedisOptions& options) {
  constexpr std::string_view kWhat = "cannot connect to Redis over TLS";
  ERR_clear_error();
  tls_context_ = SSL_CTX_new(TLS_client_method());
  if (tls_context_ == nullptr) return TlsFailed(kWhat);
  SSL_CTX_set_min_proto_version(tls_context_, TLS1_2_VERSION);
  SSL_CTX_set_verify(tls_context_, SSL_VERIFY_PEER, nullptr);
  const bool has_ca =
      options.tls_ca_file.empty()
          ? SSL_CTX_set_default_verify_paths(tls_context_) == 1
          : SSL_CTX_load_verify_locations(tls_context_, options.tls_ca_file.c_str(), nullptr) == 1;
  if (!has_ca) return TlsFailed("cannot read the certificates in " + options.tls_ca_file);
  if (!options.tls_certificate_file.empty() &&
      (SSL_CTX_use_certificate_chain_file(tls_context_, options.tls_certificate_file.c_str()) !=
           1 ||
       SSL_CTX_use_PrivateKey_file(tls_context_, options.tls_key_file.c_str(), SSL_FILETYPE_PEM) !=
           1)) {
    return TlsFailed("cannot read the client's certificate or key");
  }
  tls_ = SSL_new(tls_context_);
  if (tls_ == nullptr || SSL_set_fd(tls_, fd_) != 1) return TlsFailed(kWhat);
  SSL_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const std::string& name =
      options.tls_server_name.empty() ? options.host : options.tls_server_name;
  X509_VERIFY_PARAM* const expected = SSL_get0_param(tls_);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) != 1) {
    ERR_clear_error();
    if (SSL_set1_host(tls_, name.c_str()) != 1) return TlsFailed(kWhat);
    SSL_set_tlsext_host_name(tls_, name.c_str());
  }
  for (int result = 0; (result = SSL_connect(tls_)) != 1;) {
    if (Status status = WaitForTls(result, kWhat); !status.ok()) return status;
  }
  return {};
}

Status RespConnection::LogIn(const RedisOptions& options) {
  if (options.password.empty()) return {};
  RespReply reply;
  std::vector<std::string_view> words{"AUTH"};
  if (!options.username.empty()) words.push_back(options.username);
  words.push_back(options.password);
  if (Status status = Ask(words, reply); !status.ok()) return status;
  if (reply.type == '-') return Status::Error("Redis refuses: " + reply.text);
  return {};
}

Status RespConnection::Connect(const RedisOptions& options) {
  timeout_ = options.timeout;
  give_up_at_ = Clock::now() + kMaxTimeouts * timeout_;
  const SignalGuard guard(SIGPIPE);
  Status status = options.unix_socket.empty() ? ConnectTcp(options.host, options.port)
                                              : ConnectUnix(options.unix_socket);
  if (status.ok() && options.tls) status = StartTls(options);
  if (status.ok()) status = LogIn(options);
  return status;
}

Status RespConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    Status status;
    if (tls_ != nullptr) {
      ERR_clear_error();
      const int wanted = static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20));
      const int count = SSL_write(tls_, bytes.data(), wanted);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
      } else {
        status = WaitForTls(count, "cannot write to Redis");
      }
    } else {
      const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        status = Wait(POLLOUT);
      } else if (errno != EINTR) {
        status = ConnectionFailed("cannot write to Redis", errno);
      }
    }
    if (!status.ok()) return status;
  }
  return {};
}

Status RespConnection::Fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  char chunk[64 << 10];
  for (;;) {
    Status status;
    if (Clock::now() > give_up_at_) return Status::Error("Redis does not answer: timeout");
    if (tls_ != nullptr) {
      ERR_clear_error();
      const int count = SSL_read(tls_, chunk, sizeof chunk);
      if (count > 0) return buffer_.append(chunk, static_cast<size_t>(count)), Status();
      status = WaitForTls(count, "cannot read from Redis");
    } else {
      const ssize_t count = recv(fd_, chunk, sizeof chunk, 0);
      if (count > 0) return buffer_.append(chunk, static_cast<size_t>(count)), Status();
      if (count == 0) return Status::Error("Redis closed the connection");
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        status = Wait(POLLIN);
      } else if (errno != EINTR) {
        status = ConnectionFailed("cannot read from Redis", errno);
      }
    }
    if (!status.ok()) return status;
  }
}

Status RespConnection::Line(std::string& line) {
  for (;;) {
    const size_t end = buffer_.find("\r\n", at_);
    if (end != std::string::npos) {
      line.assign(buffer_, at_, end - at_);
      at_ = end + 2;
      return {};
    }
    if (buffer_.size() - at_ > kMaxLineBytes) return Unexpected();
    if (Status status = Fill(); !status.ok()) return status;
  }
}

// `size` bytes and a line end.
Status RespConnection::Bytes(size_t size, std::string& bytes) {
  bytes.clear();
  while (bytes.size() < size) {
    if (at_ == buffer_.size()) {
      if (Status status = Fill(); !status.ok()) return status;
    }
    const size_t count = std::min(size - bytes.size(), buffer_.size() - at_);
    bytes.append(buffer_, at_, count);
    at_ += count;
  }
  std::string end;
  if (Status status = Line(end); !status.ok()) return status;
  return end.empty() ? Status() : Unexpected();
}

Status RespConnection::Read(RespReply& reply, int depth) {
  std::string line;
  if (Status status = Line(line); !status.ok()) return status;
  if (line.empty() || depth > kMaxDepth) return Unexpected();
  reply.type = line[0];
  reply.text = line.substr(1);
  if (reply.type == '+' || reply.type == '-') return {};
  if (!ParseNumber(reply.text, reply.number)) return Unexpected();
  if (reply.type == ':') return {};
  if ((reply.type != '$' && reply.type != '*') || reply.number < -1) return Unexpected();
  if (reply.number == -1) return reply.type = '_', Status();
  if (reply.type == '$') {
    reply_size_ += static_cast<uint64_t>(reply.number);
    if (reply_size_ > kMaxReplyBytes) return Unexpected();
    return Bytes(static_cast<size_t>(reply.number), reply.text);
  }
  if (reply.number > kMaxListSize) return Unexpected();
  for (int64_t i = 0; i < reply.number; ++i) {
    reply_size_ += sizeof(RespReply);
    if (reply_size_ > kMaxReplyBytes) return Unexpected();
    if (Status status = Read(reply.list.emplace_back(), depth + 1); !status.ok()) return status;
  }
  return {};
}

Status RespConnection::Ask(const std::vector<std::string_view>& words, RespReply& reply) {
  give_up_at_ = Clock::now() + kMaxTimeouts * timeout_;
  const SignalGuard guard(SIGPIPE);
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    request.append("$").append(std::to_string(word.size())).append("\r\n");
    request.append(word).append("\r\n");
  }
  if (Status status = Send(request); !status.ok()) return status;
  reply = {};
  reply_size_ = 0;
  return Read(reply, 0);
}

}  // namespace libtrace::detail

#endif
