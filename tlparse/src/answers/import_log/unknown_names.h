// Finds names in a database that this version does not know: those of a newer PyTorch, or of
// another writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct UnknownName {
  std::string kind;  // record, artifact, phase, component, metric
  std::string name;
  std::int64_t count = 0;  // records; of a component: distinct components
  std::string path;        // of the first one; empty: none (component)
  std::int64_t line = 0;
  std::string torch_version;  // of the process that wrote it; empty: its log does not say
};

// By kind, then by name. `run_id`: only this run.
Result<std::vector<UnknownName>> FindUnknownNames(Database& database,
                                                  std::optional<std::int64_t> run_id);

}  // namespace tlparse
