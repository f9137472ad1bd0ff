// Alignment of two sequences: the shortest edit script (Myers' O(ND) algorithm), so that one
// insertion is one difference and not a difference of everything after it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tlparse {

// One step of the script. `a` and `b` are positions in the two sequences at that step.
struct EditStep {
  enum class Kind : std::uint8_t {
    kKeep,    // a and b are equal
    kDelete,  // only in a
    kInsert,  // only in b
  };
  Kind kind;
  std::uint32_t a;
  std::uint32_t b;
};

// Aligns sequences of `a_size` and `b_size` items, of which `equal(i, j)` says whether they match.
// Deletions come before the insertions of the same place. O((a_size + b_size) · D) time, D² memory
// for D differences; beyond `max_differences` the part between the common beginning and end is
// returned as one block of deletions and insertions (the script stays valid). Sequences are shorter
// than 2^32.
inline std::vector<EditStep> AlignSequences(
    std::size_t a_size, std::size_t b_size,
    const std::function<bool(std::size_t, std::size_t)>& equal,
    std::size_t max_differences = 2000) {
  std::size_t head = 0;
  while (head < a_size && head < b_size && equal(head, head)) ++head;
  std::size_t tail = 0;
  while (tail < a_size - head && tail < b_size - head &&
         equal(a_size - 1 - tail, b_size - 1 - tail))
    ++tail;

  using Index = std::ptrdiff_t;
  const auto n = static_cast<Index>(a_size - head - tail);
  const auto m = static_cast<Index>(b_size - head - tail);
  const auto same = [&](Index x, Index y) {
    return equal(head + static_cast<std::size_t>(x), head + static_cast<std::size_t>(y));
  };

  // furthest[d] holds, for each diagonal -d…d, the furthest x after d differences.
  std::vector<std::vector<Index>> furthest;
  const Index limit = std::min(n + m, static_cast<Index>(max_differences));
  Index found = -1;
  for (Index d = 0; d <= limit && found < 0; ++d) {
    std::vector<Index> row(static_cast<std::size_t>(2 * d + 1), -1);
    for (Index k = -d; k <= d; k += 2) {
      Index x = 0;
      if (d > 0) {
        const std::vector<Index>& before = furthest.back();
        const auto at = [&](Index diagonal) {
          const Index slot = diagonal + d - 1;
          return slot >= 0 && slot < static_cast<Index>(before.size())
                     ? before[static_cast<std::size_t>(slot)]
                     : Index{-1};
        };
        const Index down = at(k + 1);   // insertion: x stays
        const Index right = at(k - 1);  // deletion: x grows
        x = (k == -d || (k != d && right < down)) ? down : right + 1;
        if (x < 0) continue;
      }
      Index y = x - k;
      if (x > n || y > m || y < 0) continue;
      while (x < n && y < m && same(x, y)) ++x, ++y;
      row[static_cast<std::size_t>(k + d)] = x;
      if (x >= n && y >= m) found = d;
    }
    furthest.push_back(std::move(row));
  }

  const auto step_at = [](EditStep::Kind kind, auto a, auto b) {
    return EditStep{kind, static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)};
  };
  std::vector<EditStep> middle;  // backwards
  if (found >= 0) {
    Index x = n, y = m;
    for (Index d = found; d > 0; --d) {
      const std::vector<Index>& before = furthest[static_cast<std::size_t>(d - 1)];
      const auto at = [&](Index diagonal) {
        const Index slot = diagonal + d - 1;
        return slot >= 0 && slot < static_cast<Index>(before.size())
                   ? before[static_cast<std::size_t>(slot)]
                   : Index{-1};
      };
      const Index k = x - y;
      const Index down = at(k + 1), right = at(k - 1);
      const bool inserted = k == -d || (k != d && right < down);
      const Index start_x = inserted ? down : right + 1;
      while (x > start_x) {
        --x, --y;
        middle.push_back(step_at(EditStep::Kind::kKeep, x, y));
      }
      if (inserted) {
        --y;
        middle.push_back(step_at(EditStep::Kind::kInsert, x, y));
      } else {
        --x;
        middle.push_back(step_at(EditStep::Kind::kDelete, x, y));
      }
    }
    while (x > 0) {
      --x, --y;
      middle.push_back(step_at(EditStep::Kind::kKeep, x, y));
    }
  } else {
    middle.reserve(static_cast<std::size_t>(n + m));
    for (Index y = m; y-- > 0;) middle.push_back(step_at(EditStep::Kind::kInsert, n, y));
    for (Index x = n; x-- > 0;) middle.push_back(step_at(EditStep::Kind::kDelete, x, 0));
  }

  std::vector<EditStep> script;
  script.reserve(head + middle.size() + tail);
  for (std::size_t i = 0; i < head; ++i) script.push_back(step_at(EditStep::Kind::kKeep, i, i));
  for (auto step = middle.rbegin(); step != middle.rend(); ++step) {
    script.push_back(step_at(step->kind, step->a + head, step->b + head));
  }
  for (std::size_t i = 0; i < tail; ++i)
    script.push_back(step_at(EditStep::Kind::kKeep, a_size - tail + i, b_size - tail + i));
  // Within a stretch of differences: deletions first.
  for (auto begin = script.begin(); begin != script.end();) {
    if (begin->kind == EditStep::Kind::kKeep) {
      ++begin;
      continue;
    }
    auto end = begin;
    while (end != script.end() && end->kind != EditStep::Kind::kKeep) ++end;
    std::stable_partition(
        begin, end, [](const EditStep& step) { return step.kind == EditStep::Kind::kDelete; });
    begin = end;
  }
  return script;
}

}  // namespace tlparse
