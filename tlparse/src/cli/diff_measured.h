// What `tlparse diff` prints of two sides' profiles.
#pragma once

#include <string>

#include "facts/diff/measured_difference.h"

namespace tlparse {

// Of a comparison that stands for several ranks: whose times are shown, " (rank 0)".
struct Whose {
  std::string a, b;
};

void PrintMeasured(const MeasuredDifference& measured, const Whose& whose, bool all);

}  // namespace tlparse
