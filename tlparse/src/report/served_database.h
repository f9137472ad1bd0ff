// A database that is served: its connections, and what is kept of its runs. Not thread-safe but for
// `consoles`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/consoles.h"
#include "report/viewer/data.h"
#include "store/database.h"

namespace tlparse {

struct ServedDatabase {
  // Opens it, to be read only, at its latest run or the one that is followed.
  Result<void> Open(std::optional<std::int64_t> followed);
  void Close();

  std::string path;
  std::optional<Database> database;
  std::map<std::int64_t, ViewerData> runs;
  std::int64_t latest_run = 0;
  std::unique_ptr<Consoles> consoles;
};

// What sets the paths apart: the last of their components, as many as are needed.
std::vector<std::string> NamesOfPaths(const std::vector<std::string>& paths);

}  // namespace tlparse
