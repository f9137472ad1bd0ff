// The databases that a server of `tlparse mcp` answers about.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/remove_on_signal.h"
#include "base/result.h"
#include "cli/mcp/child.h"

namespace tlparse {

// Logs are ingested into temporary databases, which are removed with the object.
class McpDatabases {
 public:
  // Opened when they are first asked about.
  explicit McpDatabases(std::vector<std::string> names);
  ~McpDatabases();
  McpDatabases(const McpDatabases&) = delete;
  McpDatabases& operator=(const McpDatabases&) = delete;

  // The path of the database that was named so ("": the first), ingested if it is one of logs.
  // kUsage: there is none of that name.
  Result<std::string> Find(std::string_view name, const ChildLimits& limits);
  // Adds a database, an output directory, a log or a directory of logs; a known one is read again.
  Result<std::string> Open(const std::string& name, const ChildLimits& limits);
  std::vector<std::string> Names() const;
  // The path of the first database, if nothing has to be ingested for it; else empty.
  std::string First() const;

 private:
  struct One {
    std::string name, path;  // empty path: not opened yet
  };
  Result<std::string> Ingest(const std::string& name, const ChildLimits& limits);

  std::vector<One> all_;
  std::string directory_;  // of temporary databases; empty: there is none yet
  std::optional<RemoveOnSignal> remove_;
  int ingested_ = 0;
};

}  // namespace tlparse
