// What a cache key was made of.
#pragma once

#include <cstdint>
#include <optional>

namespace tlparse {

struct KeySet {
  std::int64_t set_id = 0;  // component_set_row.id; 0: unknown
  // nothing: no component was stored with a placeholder for it (device_text.h)
  std::optional<std::int64_t> device_index;
  bool operator==(const KeySet&) const = default;
};

}  // namespace tlparse
