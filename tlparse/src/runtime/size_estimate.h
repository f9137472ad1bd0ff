// How large a database will be, before anything is loaded.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/find_inputs.h"

namespace tlparse {

// From this size on a load says beforehand how much it will take.
inline constexpr std::int64_t kAnnouncedDatabaseBytes = 1'000'000'000;

// What a file of `size_bytes` on disk adds to a database. `compression` is "none", "gzip" or "zstd".
// A rough value: a log takes about its own size, less where payloads repeat; a profile about a tenth
// of it, far less where most events are Python frames that are not kept; the rest counts as logs do.
std::int64_t EstimateDatabaseBytes(InputKind kind, std::string_view compression,
                                   std::int64_t size_bytes);

// The sum over all inputs whose size is known. Looks at the first bytes of the files, unless they
// are too small for kAnnouncedDatabaseBytes however they are compressed; then it is the sum for
// files that are not.
std::int64_t EstimateDatabaseBytes(const FoundInputs& found);

}  // namespace tlparse
