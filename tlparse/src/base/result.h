// Errors as values. A function that can fail returns Result<T>; dropping one is a compile error
// under -Werror.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace tlparse {

// What went wrong, by what the caller can do about it.
enum class ErrorCode {
  kNotFound,      // a path, table or row that was named does not exist
  kIo,            // exists, but cannot be read or written (permissions, I/O, disk full)
  kUsage,         // the request makes no sense
  kNotATrace,     // readable, but not of the expected kind
  kDamagedInput,  // cut or damaged; what came before the damage was delivered
  kBadJson,
  kDatabase,  // an error of SQLite
  kRefused,   // would destroy something that tlparse did not write
  kInternal,  // our bug
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one sentence for a person: what is wrong and, where known, what to do
};

// A value or an Error. Never holds both; an Error's message is never empty.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace tlparse

#define TLPARSE_CONCAT_INNER(a, b) a##b
#define TLPARSE_CONCAT(a, b) TLPARSE_CONCAT_INNER(a, b)

// Return the error of `expression`, if it has one.
#define RETURN_IF_ERROR(expression)                                               \
  do {                                                                            \
    auto&& tlparse_status = (expression);                                         \
    if (!tlparse_status)                                                          \
      return tl::unexpected<::tlparse::Error>(std::move(tlparse_status).error()); \
  } while (false)

// Declare `target` as the value of `expression`, or return its error.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_INNER(TLPARSE_CONCAT(tlparse_result_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_INNER(result, target, expression)                         \
  auto result = (expression);                                                      \
  if (!result) return tl::unexpected<::tlparse::Error>(std::move(result).error()); \
  target = std::move(*result)
