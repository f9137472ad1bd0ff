#include "core/exception_text.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <typeinfo>

namespace libtrace::detail {

std::string CurrentExceptionType() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return {};
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, Free> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status));
  return status == 0 && name ? name.get() : type->name();
}

std::string RethrownExceptionType() {
#if defined(__GLIBCXX__) && (defined(__x86_64__) || defined(__aarch64__))
  // The C++ ABI (Itanium) keeps the caught exceptions of a thread as a list; one that is thrown
  // again stays at its front with a negative count of handlers.
  struct Exception {
    void* before[4];
    Exception* next;
    int handler_count;
  };
  struct Globals {
    Exception* caught;
    unsigned int uncaught_count;
  };
  const auto* const globals = reinterpret_cast<const Globals*>(abi::__cxa_get_globals());
  if (globals->caught != nullptr && globals->caught->handler_count < 0)
    return CurrentExceptionType();
#endif
  return {};
}

std::string CurrentExceptionMessage() {
  if (!std::current_exception()) return {};
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return {};
  }
}

}  // namespace libtrace::detail
