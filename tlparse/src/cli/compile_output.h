// Output of `tlparse compile`.
#pragma once

#include "answers/compile/compile.h"
#include "base/json_writer.h"

namespace tlparse {

// In at most kMostCompileText characters at the usual width: long sections are cut, and say so.
inline constexpr std::size_t kMostCompileText = 2500;
void PrintCompile(const CompileAnswer& answer);
// Without texts cut.
JsonWriter CompileJson(const CompileAnswer& answer);

}  // namespace tlparse
