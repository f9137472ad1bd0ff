// A connection to a server that speaks Redis' protocol (RESP 2), plain or over TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/cache/cache_store.h"
#include "libtrace/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace libtrace::detail {

struct RespReply {
  char type = 0;  // '+' status, '-' error, ':' number, '$' text, '*' list, '_' null
  std::string text{};
  int64_t number = 0;
  std::vector<RespReply> list{};
};

// Not thread-safe. After an error the connection is unusable.
class RespConnection {
 public:
  RespConnection() = default;
  ~RespConnection();
  RespConnection(const RespConnection&) = delete;
  RespConnection& operator=(const RespConnection&) = delete;

  // Connects, checks the server's certificate (TLS) and logs in.
  Status Connect(const RedisOptions& options);
  // An error of the server is a reply of type '-', and no failure.
  Status Ask(const std::vector<std::string_view>& words, RespReply& reply);

 private:
  using Clock = std::chrono::steady_clock;

  Status ConnectUnix(const std::string& path);
  Status ConnectTcp(const std::string& host, int port);
  Status StartTls(const RedisOptions& options);
  Status LogIn(const RedisOptions& options);
  Status Send(std::string_view bytes);
  Status Fill();  // reads more into buffer_
  Status Line(std::string& line);
  Status Bytes(size_t size, std::string& bytes);
  Status Read(RespReply& reply, int depth);
  Status Wait(short events);
  Status WaitForTls(int result, std::string_view what);

  std::chrono::milliseconds timeout_{0};
  Clock::time_point give_up_at_{};
  int fd_ = -1;
  ssl_ctx_st* tls_context_ = nullptr;
  ssl_st* tls_ = nullptr;
  std::string buffer_;
  size_t at_ = 0;            // what is before it was used
  uint64_t reply_size_ = 0;  // of the reply being read
};

}  // namespace libtrace::detail
