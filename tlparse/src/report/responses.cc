#include "report/responses.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace tlparse {
namespace {

int StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUsage:
      return 400;
    case ErrorCode::kRefused:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

void Send(httplib::Response& response, std::shared_ptr<const std::string> body, const char* type) {
  const std::size_t size = body->size();
  response.set_content_provider(
      size, type,
      [body = std::move(body)](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        return sink.write(body->data() + offset, length);
      });
}

void Send(httplib::Response& response, std::string body, const char* type) {
  Send(response, std::make_shared<const std::string>(std::move(body)), type);
}

void Refuse(httplib::Response& response, int status, std::string_view why) {
  response.status = status;
  response.set_content(fmt::format("{}\n", why), "text/plain; charset=utf-8");
}

void Refuse(httplib::Response& response, const Error& error) {
  Refuse(response, StatusOf(error.code), error.message);
}

}  // namespace tlparse
