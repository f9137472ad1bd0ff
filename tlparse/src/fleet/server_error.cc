#include "fleet/server_error.h"

#include <algorithm>
#include <cstdint>

#include "base/ascii.h"

namespace tlparse {

Retry RetryOf(int code, int status) {
  switch (code) {
    case 159:  // TIMEOUT_EXCEEDED
    case 202:  // TOO_MANY_SIMULTANEOUS_QUERIES
    case 209:  // SOCKET_TIMEOUT
    case 210:  // NETWORK_ERROR
    case 241:  // MEMORY_LIMIT_EXCEEDED
    case 242:  // TABLE_IS_READ_ONLY, while a replica starts
    case 252:  // TOO_MANY_PARTS
    case 319:  // UNKNOWN_STATUS_OF_INSERT
    case 364:  // too many requests of one user
      return Retry::kLater;
    case 0:
      break;
    default:  // a negative one: the certificate is not trusted
      return Retry::kNever;
  }
  return status == 0 || status == 408 || status == 425 || status == 429 || status >= 502
             ? Retry::kLater
             : Retry::kNever;
}

int ExceptionCode(std::string_view answer) {
  const std::size_t place = answer.find("Code: ");
  if (place == std::string_view::npos) return 0;
  int code = 0;
  for (std::size_t i = place + 6; i < answer.size() && IsDigit(answer[i]); ++i) {
    code = code * 10 + (answer[i] - '0');
    if (code > 1'000'000) return 0;
  }
  return code;
}

std::string ExceptionText(std::string_view answer) {
  std::string text(answer.substr(0, 4000));
  // "Code: 60, e.displayText() = DB::Exception: Table … doesn't exist., e.what() = DB::Exception"
  if (const std::size_t what = text.find(", e.what()"); what != std::string::npos)
    text.resize(what);
  if (const std::size_t display = text.find("e.displayText() = DB::Exception: ");
      display != std::string::npos) {
    text.erase(display, std::string_view("e.displayText() = DB::Exception: ").size());
  }
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (text.size() > 400) {
    text.resize(400);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
      text.pop_back();
    text += "…";
  }
  return text;
}

std::chrono::milliseconds Backoff(int attempt, double random) {
  const double most =
      std::min(20'000.0, 200.0 * static_cast<double>(1U << std::min(attempt - 1, 10)));
  return std::chrono::milliseconds(static_cast<std::int64_t>(most * (0.1 + 0.9 * random)));
}

}  // namespace tlparse
