// What a ClickHouse server or the way to it reports, and when a request is repeated.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// Whether a failed request should be repeated.
enum class Retry {
  kNever,  // the same request would fail again
  kLater,  // the server is busy or was not reached
};
// By ClickHouse's error code (0: none) and HTTP's status (0: no answer).
Retry RetryOf(int code, int status);
// The number of "Code: 252, e.displayText() = …"; 0 if there is none.
int ExceptionCode(std::string_view answer);
// The message for a person: one line, at most 400 bytes.
std::string ExceptionText(std::string_view answer);
// How long to wait before attempt number `attempt` (1: the second): a random time up to 0.2 s,
// 0.4 s, … 20 s. `random` is uniform in [0, 1).
std::chrono::milliseconds Backoff(int attempt, double random);

struct ClickHouseError {
  int code = 0;    // of ClickHouse; 0: unknown
  int status = 0;  // of HTTP; 0: no answer
  std::string message;
};
template <typename T>
using ServerResult = tl::expected<T, ClickHouseError>;

}  // namespace tlparse
