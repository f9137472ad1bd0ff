// Words and names that are PyTorch's, Python's or tlparse's own (scripts/public-words.py).
#pragma once

#include <string_view>

namespace tlparse {

// Whether names and texts of PyTorch are made of this word; letters alone, lower case.
bool IsPublicWord(std::string_view word);

// Whether it is a whole name of PyTorch's interface, without underscores around it, lower case.
bool IsPublicName(std::string_view name);

}  // namespace tlparse
