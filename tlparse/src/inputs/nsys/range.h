// What the text of an NVTX range of PyTorch says: emit_nvtx() writes the names of the profiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "enums/profile.h"

namespace tlparse {

struct NsysRange {
  std::optional<CompiledSliceKind> slice;  // a slice of compiled code
  bool is_op = false;                      // an op; with neither an annotation
  std::string_view name;                   // key, label or name as in the profiler's rows
  std::optional<std::int64_t> sequence;    // of autograd
  std::optional<std::int64_t> step;        // of ProfilerStep#n
};

// The result views `text`.
NsysRange ParseNsysRange(std::string_view text);

}  // namespace tlparse
