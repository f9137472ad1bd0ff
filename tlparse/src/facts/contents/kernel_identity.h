// What a kernel of generated code computes, as text that is comparable between runs: its operations
// and the shapes of its arguments. Kernels of two runs may have the same name and compute other
// things, and other names and compute the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct KernelIdentity {
  // "fused_gelu ([64, 256] float32, [64, 256] float32)"; empty: the code does not tell. Sizes that
  // are symbols are "s".
  std::string text;
  bool has_symbols = false;  // sizes of a call may differ from those of another
};

class CodeTensors;

// `line`: a call in a generated Python wrapper, without the blanks before it; `shapes`: what the
// lines above it say of its arguments.
KernelIdentity IdentityOf(std::string_view kernel, std::string_view line,
                          const CodeTensors& shapes);

struct GraphKernels {
  std::int64_t compile_id = 0;
  std::string direction;
  std::int64_t slot = 0;  // among the graphs of this direction in its compile
  std::string code_hash;  // of the normalised code; empty: the log has none
  std::map<std::int64_t, KernelIdentity> kernels;  // by id: those that the code calls
};

Result<GraphKernels> LoadGraphKernels(Database& database, std::int64_t graph_id);

}  // namespace tlparse
