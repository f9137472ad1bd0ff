// What every command that talks to a fleet's servers takes: where they are, and who is asking.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "fleet/clickhouse_client.h"

namespace tlparse {

struct FleetArguments {
  std::vector<std::string> urls;
  std::string database = "tlparse";
  std::string credentials;
  std::string ca_file;
  bool is_insecure = false;
  int timeout_s = 600;

  void AddTo(Arguments& app);
  // One for each --url. kUsage without one; kNotFound, kIo, kRefused: the file of credentials.
  Result<std::vector<ClickHouseOptions>> Servers() const;
};

// 1 where a server refuses, else the exit code of the error; prints it.
int ReportFleetError(const Error& error);

// Seconds since 1970 of the begin of "30d", "12h", "2026-11-01": now less the time, or that day.
// Nothing if it is none of them.
std::optional<std::int64_t> ParseSince(const std::string& text);

}  // namespace tlparse
