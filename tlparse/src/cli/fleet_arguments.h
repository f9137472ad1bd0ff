// Options of every command that uses a fleet's servers: their addresses and the account.
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

// Prints the error; returns 1 if a server refuses, else the exit code of the error.
int ReportFleetError(const Error& error);

// Seconds since 1970 of "30d" or "12h" (that long ago) or "2026-11-01" (the start of that day).
// Nothing for any other text.
std::optional<std::int64_t> ParseSince(const std::string& text);

}  // namespace tlparse
