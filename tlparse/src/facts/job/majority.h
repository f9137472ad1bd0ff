// Chooses the class with which the others are compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "facts/job/job.h"

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

// The same where logs may end early: they are no reference unless all do. Where none of the others
// is a majority, `likeness` decides.
template <typename Class, typename EndsEarly, typename Likeness>
void OrderByReference(std::vector<Class>& classes, const EndsEarly& ends_early,
                      const Likeness& likeness) {
  if (classes.empty() || (OrderByReference(classes) && !ends_early(classes.front()))) return;
  const bool has_whole = !std::all_of(classes.begin(), classes.end(), ends_early);
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!has_whole || !ends_early(classes[i])) candidates.push_back(i);
  }
  const Reference reference = FindReference(
      candidates.size(), [&](std::size_t i) -> const auto& {
        return classes[candidates[i]].ranks;
      });
  std::size_t best = candidates[reference.index];
  for (const std::size_t i : candidates) {
    if (!(has_whole && reference.has_majority) && likeness(classes[i]) > likeness(classes[best]))
      best = i;
  }
  PutFirst(classes, best);
}

}  // namespace tlparse
