// Medians of a few values; of none: 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace tlparse {

// Of two values in the middle the lower one: where half of the values are large, it is not.
template <typename Value>
Value LowerMedian(std::vector<Value> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of two values in the middle their mean.
inline double Median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 != 0) return *middle;
  return (*std::max_element(sorted.begin(), middle) + *middle) / 2;
}

}  // namespace tlparse
