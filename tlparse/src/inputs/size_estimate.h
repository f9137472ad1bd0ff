// Estimates the size of a database before the load.
#pragma once

#include <cstdint>
#include <string_view>

#include "inputs/find_inputs.h"

namespace tlparse {

// From this size on a load announces the estimate.
inline constexpr std::int64_t kAnnouncedDatabaseBytes = 1'000'000'000;

// What a file of `size_bytes` on disk adds to a database. `compression` is "none", "gzip" or "zstd".
// A rough value: a log takes about its own size, less where payloads repeat; a profile about a tenth
// of it, far less where most events are Python frames that are not kept; the rest counts as logs do.
std::int64_t EstimateDatabaseBytes(InputKind kind, std::string_view compression,
                                   std::int64_t size_bytes);

// The sum over all inputs whose size is known. Reads the first bytes of the files to find the
// compression, unless the files are too small to reach kAnnouncedDatabaseBytes in any case; then
// they count as not compressed.
std::int64_t EstimateDatabaseBytes(const FoundInputs& found);

}  // namespace tlparse
