// Output of tlparse memory as JSON.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json_writer.h"
#include "facts/memory/memory.h"

namespace tlparse {

// schemas/json/answers/memory.schema.json; `by` and `at`: as the flags name them. The first `top` rows
// of each device.
JsonWriter MemoryJson(const MemoryAnswer& answer, std::string_view by, std::string_view at,
                      std::size_t top);

}  // namespace tlparse
