// The words of a compile's status in JSON Schemas.
#pragma once

#include "artifacts/common/compile_status.h"
#include "base/fields.h"

namespace tlparse {

template <>
struct LastOf<CompileStatus> {
  static constexpr CompileStatus value = CompileStatus::kUnfinished;
};

}  // namespace tlparse
