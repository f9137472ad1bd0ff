#include "report/access.h"

#include <fmt/format.h>
#include <httplib.h>

#include <random>

#include "report/own_host.h"

namespace tlparse {
namespace {

// In a time that does not depend on where they differ.
bool IsSame(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differences |= a[i] ^ b[i];
  return differences == 0;
}

// Cookies are those of all ports of a host.
std::string CookieName(int port) { return fmt::format("tlparse_{}", port); }

std::string_view CookieOf(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const std::string_view cookie = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), cookie.size() + 1));
    const std::string_view trimmed =
        cookie.substr(std::min(cookie.size(), cookie.find_first_not_of(' ')));
    if (trimmed.size() > name.size() && trimmed.starts_with(name) && trimmed[name.size()] == '=')
      return trimmed.substr(name.size() + 1);
  }
  return {};
}

}  // namespace

std::string TokenFor(std::string_view host) {
  if (IsLoopback(host)) return {};
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

std::string ServerUrl(std::string_view host, int port, std::string_view token) {
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  return fmt::format("http://{}{}{}:{}/{}{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port,
                     token.empty() ? "" : "?token=", token);
}

bool HasAccess(const httplib::Request& request, httplib::Response& response, std::string_view token,
               int port) {
  if (token.empty()) return true;
  if (IsSame(CookieOf(request.get_header_value("Cookie"), CookieName(port)), token)) return true;
  if (IsSame(request.get_param_value("token"), token)) {
    response.set_header("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax",
                                                  CookieName(port), token));
    response.set_redirect(request.path);
    return false;
  }
  response.status = 403;
  response.set_content("open the address with the token, as tlparse has printed it\n",
                       "text/plain; charset=utf-8");
  return false;
}

}  // namespace tlparse
