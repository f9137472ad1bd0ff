// Memory in words.
#include <fmt/format.h>

#include "base/human_bytes.h"
#include "facts/memory/memory.h"

namespace tlparse {

std::string MemoryName(const MemoryDevice& device) {
  if (device.device) return fmt::format("device {}", *device.device);
  return device.kind == "kineto" ? "the CPU" : "pinned memory";
}

std::string HolderText(const MemoryRow& row) {
  if (row.file.empty() && row.label.empty())
    return fmt::format("{} without a line ({})", HumanBytes(row.size_bytes), row.reason);
  const std::string place =
      row.file.empty()
          ? fmt::format("compile {}", row.label)
          : fmt::format("{}:{}", row.file.substr(row.file.rfind('/') + 1), row.line.value_or(0));
  return fmt::format("{} of {}{}", HumanBytes(row.size_bytes), place,
                     row.category.empty() ? "" : fmt::format(" ({})", row.category));
}

}  // namespace tlparse
