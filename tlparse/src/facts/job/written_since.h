// Inputs of answers that not every version of PyTorch writes, and what to say where the version is
// why there are none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

enum class VersionedInput : std::uint8_t {
  kKernelNodes,  // which graph nodes a kernel was made of
  kGraphOrder,   // the order in which graphs run
  kAotAutogradLookups,
  kGlooDumps,  // dumps of the recorder by processes whose backend is gloo
};

// "the log is of PyTorch 2.7.1; PyTorch writes the order in which graphs run since 2.9". Where logs
// do not say their version: since when it is written, and that they do not. Empty: some log of the
// run (nothing: of all runs) is of a version that writes it, or all are of other writers. Thread-safe
// as `database` is.
Result<std::string> WhyNotWritten(Database& database, std::optional<std::int64_t> run_id,
                                  VersionedInput input);

}  // namespace tlparse
