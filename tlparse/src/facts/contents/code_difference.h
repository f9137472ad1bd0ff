// Why two generated codes differ, where the codes themselves show it.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// "for vectors of 8 floats instead of 16" or "for 2 threads instead of 1" of code b against code a:
// C++ that was generated for other vector instructions, or for another number of threads. Empty:
// neither.
std::string TargetChange(std::string_view a, std::string_view b);

// Whether two generated codes do the same: they differ in comments and in the names of kernels,
// which PyTorch makes from the operations that the graph had before it was simplified.
bool AreEqualButForNames(std::string_view a, std::string_view b);

}  // namespace tlparse
