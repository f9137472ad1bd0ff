// What an exception of the compiler says.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// The first line that is not empty.
std::string FirstLineWithText(std::string_view text);

// "ValueError('x')" of "Observed exception": what the code that was traced raised; empty: nothing.
std::string RaisedException(std::string_view reason);

// Of a compiler of C++ or of a GPU that failed, also what it wrote of its first error.
// "InductorError", "RuntimeError: x\n\nSet TORCHDYNAMO_VERBOSE=1 …" → "InductorError: RuntimeError:
// x".
std::string CauseOfException(std::string_view type, std::string_view reason);

// What to try against an exception that hosts or files cause; empty: nothing is known.
std::string AdviceForException(std::string_view reason);

}  // namespace tlparse
