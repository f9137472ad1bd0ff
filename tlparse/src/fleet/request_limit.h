// Ends the connection of a request whose server stays silent, or sends headers without end.
//
// httplib has a time limit for each read and write only, and none for all addresses of a host
// together. A thread compares what the kernel counts for the connection with these limits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tlparse {

class RequestLimit {
 public:
  enum class Ended { kNo, kSilent, kHeaders };
  // Asks the server on another connection whether it works on the request with this id, in a bounded
  // time. Called from another thread.
  using IsWorking = std::function<bool(const std::string& id)>;

  // `is_working` may be empty: then nothing prolongs the time until the headers, and no piece of a
  // body the time of a request.
  explicit RequestLimit(IsWorking is_working) : is_working_(std::move(is_working)) {}
  ~RequestLimit();
  RequestLimit(const RequestLimit&) = delete;
  RequestLimit& operator=(const RequestLimit&) = delete;

  // The connection that is used from now on.
  void SetSocket(int socket);

  // A request begins. It ends after `silence` in which the server is not connected to, takes nothing
  // of the request, sends no complete headers or nothing of the body, and does not say that it works
  // on the request either.
  // kIo: the system has no thread left.
  Result<void> Begin(std::chrono::milliseconds silence, const std::string& id);
  void HeadersCame();
  // The client works on a piece of the body: the time does not count. Then it waits for the next.
  void PieceCame();
  void WaitForPiece();
  // The request is over: what ended it, if this did.
  Ended End();

 private:
  using Clock = std::chrono::steady_clock;
  void Watch();
  void Look(std::unique_lock<std::mutex>& lock);
  void Ask(std::unique_lock<std::mutex>& lock);
  void Prolong();
  void EndConnection(Ended why);

  IsWorking is_working_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::thread thread_;
  FileDescriptor socket_;  // a duplicate: the number is not used again before this is closed
  std::chrono::milliseconds silence_{};
  std::string id_;
  Clock::time_point deadline_, ask_at_;
  std::uint64_t received_before_ = 0;  // bytes of the connection before the request
  std::uint64_t acknowledged_ = 0;     // bytes that the server's kernel took
  std::uint64_t request_ = 0;          // number of the current one
  bool is_under_way_ = false;
  bool has_headers_ = false;
  bool is_paused_ = false;
  bool is_over_ = false;
  Ended ended_ = Ended::kNo;
};

}  // namespace tlparse
