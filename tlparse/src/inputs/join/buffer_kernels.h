// What lines of generated code make tensors for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A line that allocates a buffer.
struct BufferLine {
  std::int64_t line = 0;
  std::optional<std::int64_t> bytes;  // nothing: a size is no number
  bool is_cpu = false;
};

class BufferKernels {
 public:
  // The kernel (kernel_row.id) that the line calls, or the first that is given the buffer that the line
  // allocates: what is empty must be written first. Nothing: neither is known.
  Result<std::optional<std::int64_t>> At(Database& database, std::int64_t graph_id,
                                         std::int64_t code_line);
  // The lines that allocate, in the order in which the code runs, those of a function once for each of its
  // calls; none if the code has branches.
  Result<const std::vector<BufferLine>*> Lines(Database& database, std::int64_t graph_id);

 private:
  struct Code {
    std::map<std::int64_t, std::int64_t> kernels;  // by line
    std::vector<BufferLine> lines;
  };
  Result<const Code*> CodeOf(Database& database, std::int64_t graph_id);
  std::map<std::int64_t, Code> graphs_;
};

}  // namespace tlparse
