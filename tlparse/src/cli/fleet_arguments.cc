#include "cli/fleet_arguments.h"

#include <charconv>
#include <ctime>

#include "cli/command.h"
#include "fleet/sql_quote.h"

namespace tlparse {

void FleetArguments::AddTo(Arguments& app) {
  app.Add(
         "--url", urls,
         "a ClickHouse server, like https://host:8443; may be repeated: each run is on one of them")
      .OneValueEach();
  app.Add("--database", database, "the database of the fleet's tables").ShowDefault();
  app.Add(
      "--credentials", credentials,
      "file of mode 0600 with lines user=… and password=… (default: the environment's "
      "TLPARSE_CLICKHOUSE_USER and TLPARSE_CLICKHOUSE_PASSWORD, else 'default' without password)");
  app.Add("--ca", ca_file, "file of the authority that signed the server's certificate (PEM)");
  app.Flag("--insecure", is_insecure, "plain http to another machine: others can read everything");
  app.Add(
         "--timeout", timeout_s,
         "seconds to wait for a server that is silent, busy or not reachable; a query that it says "
         "it works on is not ended")
      .Between(1, 86'400)
      .ShowDefault();
}

Result<std::vector<ClickHouseOptions>> FleetArguments::Servers() const {
  if (urls.empty())
    return Fail(ErrorCode::kUsage, "--url is missing: the fleet's ClickHouse server");
  ClickHouseOptions common;
  common.database = database;
  common.ca_file = ca_file;
  common.allow_insecure = is_insecure;
  common.patience = std::chrono::seconds(timeout_s);
  RETURN_IF_ERROR(ReadCredentials(credentials, common));
  std::vector<ClickHouseOptions> servers;
  for (const std::string& url : urls) {
    servers.push_back(common);
    servers.back().url = url;
    // Said before any work is done.
    RETURN_IF_ERROR(ClickHouseClient::Make(servers.back()));
  }
  return servers;
}

int ReportFleetError(const Error& error) {
  const int code = ReportError(error);
  return error.code == ErrorCode::kRefused ? kExitNo : code;
}

std::optional<std::int64_t> ParseSince(const std::string& text) {
  if (const std::int64_t day = ParseDay(text); day >= 0) return day * 86400;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count < 0 || count > 100'000 || end + 1 != text.data() + text.size())
    return std::nullopt;
  const std::int64_t unit = *end == 'd' ? 86400 : *end == 'h' ? 3600 : 0;
  if (unit == 0) return std::nullopt;
  return static_cast<std::int64_t>(std::time(nullptr)) - count * unit;
}

}  // namespace tlparse
