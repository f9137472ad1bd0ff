#include "report/served_page.h"

#include <fmt/format.h>

#include <string_view>

#include "report/live_state.h"
#include "report/viewer/export.h"

namespace tlparse {

ServedPage MakeServedPage(const LiveState* live) {
  ServedPage page{std::string(ViewerPage()), {}};
  constexpr std::string_view kStatic = "data-source=\"static\"";
  if (const std::size_t at = page.html.find(kStatic); at != std::string::npos) {
    page.html.replace(at, kStatic.size(),
                      live ? fmt::format("data-source=\"live\" data-run=\"{}\"", live->run_id())
                           : "data-source=\"api\"");
  }
  constexpr std::string_view kMeta = "http-equiv=\"Content-Security-Policy\" content=\"";
  if (const std::size_t at = page.html.find(kMeta); at != std::string::npos) {
    const std::size_t start = at + kMeta.size();
    page.policy =
        page.html.substr(start, page.html.find('"', start) - start) + "; frame-ancestors 'none'";
  }
  return page;
}

httplib::Headers HeadersOf(const ServedPage& page) {
  return {{"Content-Security-Policy", page.policy},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

}  // namespace tlparse
