// PyTorch's exceptions for a function that was compiled too often.
#pragma once

#include <string_view>

namespace tlparse {

// Whether an exception says that a function was recompiled too often.
bool IsRecompileLimit(std::string_view type, std::string_view reason);
// Whether the message says that reaching the limit is an error for the caller (fullgraph=True).
bool IsHardRecompileLimit(std::string_view type);
// Whether the exception is the same with and without fullgraph=True (PyTorch 2.6).
bool IsSilentRecompileLimit(std::string_view type);

}  // namespace tlparse
