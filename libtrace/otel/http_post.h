// One POST over HTTP/1.1, without TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace libtrace::otel {

struct HttpAnswer {
  int status = 0;    // 0: no answer
  std::string body;  // of at most 64 KiB
};

// Waits for `timeout` at most, apart from the resolver. Throws std::bad_alloc only.
HttpAnswer HttpPost(const std::string& host, uint16_t port, std::string_view path,
                    std::string_view json, std::chrono::milliseconds timeout);

}  // namespace libtrace::otel
