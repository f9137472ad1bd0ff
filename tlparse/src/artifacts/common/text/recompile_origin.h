// Where a guard that failed came from, as PyTorch words it. Internal to artifacts and what reads its texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

struct RecompileOrigin {
  std::string_view file;  // maybe cut on the left; empty: unknown
  std::optional<std::int64_t> line;
};

// "<guard>  # <code>  # scripts/a.py:3 in f (HINT: …)": the file and line behind the last "  # " that reads
// like a position; the code may itself hold "  # ".
RecompileOrigin OriginOfRecompile(std::string_view check);

}  // namespace tlparse
