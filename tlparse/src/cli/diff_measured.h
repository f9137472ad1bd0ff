// What `tlparse diff` prints and writes of two sides' profiles.
#pragma once

#include <optional>
#include <string>

#include "base/json_writer.h"
#include "facts/diff/measured_difference.h"

namespace tlparse {

// Of a comparison that stands for several ranks: whose times are shown, " (rank 0)".
struct Whose {
  std::string a, b;
};

void PrintMeasured(const MeasuredDifference& measured, const Whose& whose, bool all);
// The member "measured"; null: a side has no profile.
void WriteMeasured(JsonWriter& json, const std::optional<MeasuredDifference>& measured);

}  // namespace tlparse
