// Reads JSON of a snapshot (json.dump of torch.cuda.memory._snapshot()) as a stream.
#pragma once

#include <functional>
#include <optional>

#include "inputs/common/plain_value.h"
#include "inputs/memory/source.h"
#include "inputs/memory/values.h"

namespace tlparse::memory {

struct JsonResult {
  std::optional<Node> root;
  std::optional<PlainProblem> problem;
};

// `is_full`: whether the reading has to end.
JsonResult ReadSnapshotJson(StreamSource& source, Values& values,
                            const std::function<bool()>& is_full);

}  // namespace tlparse::memory
