// Which processes `tlparse status` is asked about.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "facts/job/job_tree.h"
#include "facts/job/status.h"

namespace tlparse {

struct StatusFilter {
  std::optional<std::int64_t> rank;  // with its children
  std::optional<std::int64_t> pid;

  void Apply(const JobTree& tree, std::vector<ProcessStatus>& rows) const;
};

}  // namespace tlparse
