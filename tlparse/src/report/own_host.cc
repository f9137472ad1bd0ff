#include "report/own_host.h"

#include <arpa/inet.h>

#include <string>

namespace tlparse {
namespace {

bool IsAddress(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         (host.starts_with("127.") && IsAddress(std::string(host)));
}

bool IsOwnHost(std::string_view host_header, std::string_view host, int port) {
  if (host_header.empty()) return false;
  std::string name(host_header);
  // "[::1]:80" has its port behind the bracket, "::1" has none.
  const std::size_t colon = name.rfind(':');
  const bool has_port = colon != std::string::npos && name.find(']', colon) == std::string::npos &&
                        (name.front() == '[' || name.find(':') == colon);
  if (has_port) {
    if (name.substr(colon + 1) != std::to_string(port)) return false;
    name.resize(colon);
  } else if (port != 80) {
    return false;
  }
  if (name == "localhost" || name == host) return true;
  return IsLoopback(host) ? IsAddress(name) && IsLoopback(name) : IsAddress(name);
}

}  // namespace tlparse
