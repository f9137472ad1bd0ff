#pragma once

#include <string_view>

namespace tlparse {

// Whether only this machine reaches a server that listens on `host`.
bool IsLoopback(std::string_view host);

// Whether a request with this Host header is for a server that listens on `host`:`port`. Only names
// that others cannot make to point here are accepted: localhost, addresses, and `host` itself.
bool IsOwnHost(std::string_view host_header, std::string_view host, int port);

}  // namespace tlparse
