// Who may read what a server serves that other machines reach: who knows its token.
#pragma once

#include <string>
#include <string_view>

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace tlparse {

// The token of a server that listens on `host`: 32 random digits. Empty: only this machine reaches
// the address, and nothing is asked of a request.
std::string TokenFor(std::string_view host);

// "http://127.0.0.1:8577/", with the token if there is one.
std::string ServerUrl(std::string_view host, int port, std::string_view token);

// False: the response is made. The token is in the address that is opened first (?token=…), whose
// answer leaves it in a cookie and leads to the same address without it.
bool HasAccess(const httplib::Request& request, httplib::Response& response, std::string_view token,
               int port);

}  // namespace tlparse
