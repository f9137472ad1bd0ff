// What the joins of a profile find by a number: by a correlation, an external id, a sequence number.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/spilling_vector.h"

namespace tlparse {

// Indexes by number, in the order added where a number has several.
class Numbered {
 public:
  // `directory`: of the database.
  explicit Numbered(const std::string& directory) : entries_(directory) {}

  Result<void> Add(std::int64_t number, std::size_t index) {
    return entries_.Push({number, static_cast<std::uint32_t>(index)});
  }
  // Once, when all are added.
  void Sort() { std::sort(entries_.begin(), entries_.end()); }
  struct Entry {
    std::int64_t number;
    std::uint32_t index;
    auto operator<=>(const Entry&) const = default;
  };
  std::optional<std::uint32_t> First(std::int64_t number) const {
    const Entry* const first = std::lower_bound(entries_.begin(), entries_.end(), Entry{number, 0});
    return first == entries_.end() || first->number != number ? std::nullopt
                                                              : std::optional(first->index);
  }

 private:
  SpillingVector<Entry> entries_;
};

}  // namespace tlparse
