// Type and message of the exception that is being handled.
#pragma once

#include <string>

#include "libtrace/export.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

// Both only within a catch block; "" outside, and for what has no text. May throw std::bad_alloc.
std::string CurrentExceptionType();     // demangled: std::runtime_error
std::string CurrentExceptionMessage();  // what() of a std::exception

// In a destructor that runs because of an exception: its type if a handler passes it on with
// `throw;`, which is the only case in which it can be seen; else "". May throw std::bad_alloc.
std::string RethrownExceptionType();

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
