// Whether errno survives a call. Link changing_errno.cc: each allocation then changes it.
#pragma once

#include <cerrno>
#include <optional>
#include <utility>

#include "tests/catch2.h"

namespace libtrace::testing {

template <class F>
void KeepsErrno(const char* text, F&& call) {
  errno = EXDEV;
  call();
  const int after = errno;
  INFO(text);
  CHECK(after == EXDEV);
}

}  // namespace libtrace::testing

// The arguments must be made before: what the caller allocates changes errno too.
#define KEEPS_ERRNO(...) ::libtrace::testing::KeepsErrno(#__VA_ARGS__, [&] { __VA_ARGS__; })
