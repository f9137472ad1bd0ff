// Which kernel a line of generated code makes a tensor for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

class BufferKernels {
 public:
  // The kernel (kernel_row.id) that the line calls, or the first that is given the buffer that the line
  // allocates: what is empty must be written first. Nothing: neither is known.
  Result<std::optional<std::int64_t>> At(Database& database, std::int64_t graph_id,
                                         std::int64_t code_line);

 private:
  using KernelsByLine = std::map<std::int64_t, std::int64_t>;
  std::map<std::int64_t, KernelsByLine> graphs_;
};

}  // namespace tlparse
