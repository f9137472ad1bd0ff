// Responses of the server.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// Sends the body as it is. httplib would compress what it gets as content, at Brotli's highest
// level: a quarter of a second for the page, which a browser on the same machine does not get back.
void Send(httplib::Response& response, std::shared_ptr<const std::string> body, const char* type);
void Send(httplib::Response& response, std::string body, const char* type);

void Refuse(httplib::Response& response, int status, std::string_view why);
void Refuse(httplib::Response& response, const Error& error);

}  // namespace tlparse
