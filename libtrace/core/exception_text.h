// What the exception that is being handled is called, and what it says.
#pragma once

#include <string>

#include "libtrace/export.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

// Both only within a catch block; "" outside, and for what has no text. May throw std::bad_alloc.
std::string CurrentExceptionType();     // demangled: std::runtime_error
std::string CurrentExceptionMessage();  // what() of a std::exception

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
