// Guards as answers show them, and in a form that is comparable between processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tlparse {

// Whether a guard names what only PyTorch's generated code has: G['__import_…'],
// G['__builtins_dict___0'], ___check_…(…).
bool HasGeneratedNames(std::string_view guard);

// One line. Checks that PyTorch generates are said in words where that is possible ("type of x:
// int"); where names remain that only generated code has, the line of Python that the guard stems
// from is named instead: "if user_override is None: (utils/_config_module.py:461)". `code` may be
// empty, `line` 0: unknown.
std::string ReadableGuard(std::string_view guard, std::string_view code, std::string_view file,
                          std::int64_t line);

// The guard without what differs between processes, and between versions of PyTorch that write the
// same check differently.
std::string GuardKey(std::string_view guard);

}  // namespace tlparse
