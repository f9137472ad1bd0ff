// Chooses the class with which the others are compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "analysis/ranks/job.h"

namespace tlparse {

struct Reference {
  std::size_t index = 0;
  bool has_majority = true;
};

// `ranks_of(i)` are the ranks of class i of `count`, ascending. The class with more than half of
// all ranks; if there is none, classes are equals and the one with the lowest rank is chosen.
template <typename RanksOf>
Reference FindReference(std::size_t count, const RanksOf& ranks_of) {
  std::size_t total = 0, largest = 0, lowest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    total += ranks_of(i).size();
    if (ranks_of(i).size() > ranks_of(largest).size()) largest = i;
    if (ranks_of(i).front() < ranks_of(lowest).front()) lowest = i;
  }
  if (count == 0 || 2 * ranks_of(largest).size() > total) return {largest, true};
  return {lowest, false};
}

// Moves a class to the front and sorts the others by size, then by lowest rank.
template <typename Class>
void PutFirst(std::vector<Class>& classes, std::size_t index) {
  std::swap(classes[0], classes[index]);
  std::sort(classes.begin() + 1, classes.end(), [](const Class& a, const Class& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size()
                                            : a.ranks.front() < b.ranks.front();
  });
}

// The same for the reference. Whether it is a majority.
template <typename Class>
bool OrderByReference(std::vector<Class>& classes) {
  if (classes.empty()) return true;
  const Reference reference = FindReference(
      classes.size(),
      [&](std::size_t i) -> const std::vector<RankIndex>& { return classes[i].ranks; });
  PutFirst(classes, reference.index);
  return reference.has_majority;
}

// The same where logs may end early: they are no reference unless all do. Then it is the one that
// goes furthest.
template <typename Class, typename EndsEarly, typename Reach>
void OrderByReference(std::vector<Class>& classes, const EndsEarly& ends_early,
                      const Reach& reach) {
  if (classes.empty() || (OrderByReference(classes) && !ends_early(classes.front()))) return;
  std::vector<std::size_t> whole;
  std::size_t furthest = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!ends_early(classes[i])) whole.push_back(i);
    if (reach(classes[i]) > reach(classes[furthest])) furthest = i;
  }
  const Reference reference = FindReference(
      whole.size(), [&](std::size_t i) -> const auto& { return classes[whole[i]].ranks; });
  PutFirst(classes, whole.empty() ? furthest : whole[reference.index]);
}

}  // namespace tlparse
