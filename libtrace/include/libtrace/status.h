// Status: success, or one sentence that says what went wrong.
#pragma once

#include <string>
#include <utility>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  static Status Error(std::string message) {
    Status status;
    status.is_error_ = true;
    status.message_ = std::move(message);
    return status;
  }

  bool ok() const { return !is_error_; }
  explicit operator bool() const { return ok(); }
  // "" on success.
  const std::string& message() const { return message_; }

 private:
  bool is_error_ = false;
  std::string message_;
};

}  // namespace LIBTRACE_EXPORT
