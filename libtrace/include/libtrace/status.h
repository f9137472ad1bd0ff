// Status: success, or one sentence that says what went wrong.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  static Status Error(std::string message) {
    Status status;
    status.message_ = std::move(message);
    return status;
  }

  bool ok() const { return !message_; }
  explicit operator bool() const { return ok(); }
  // "" on success.
  const std::string& message() const {
    static const std::string empty;
    return message_ ? *message_ : empty;
  }

 private:
  std::optional<std::string> message_;
};

}  // namespace LIBTRACE_EXPORT
