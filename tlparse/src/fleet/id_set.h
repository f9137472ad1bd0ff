// A set of row ids, a bit each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tlparse {

class IdSet {
 public:
  void Add(std::int64_t id) {
    if (id < 0) return;
    if (static_cast<std::size_t>(id) >= bits_.size())
      bits_.resize(static_cast<std::size_t>(id) + 1 + bits_.size() / 2);
    bits_[static_cast<std::size_t>(id)] = true;
  }
  bool Has(std::int64_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < bits_.size() &&
           bits_[static_cast<std::size_t>(id)];
  }
  std::int64_t end() const { return static_cast<std::int64_t>(bits_.size()); }

 private:
  std::vector<bool> bits_;
};

}  // namespace tlparse
