#include "facts/job/exits.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "queries/facts/job/exits.h"

namespace tlparse {

bool ProcessExit::WasAsked() const {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

Result<std::vector<ProcessExit>> LoadExits(Database& database, std::int64_t run_id) {
  std::vector<ProcessExit> exits;
  FOR_EACH_ROW(const ExitOfProcess& row, Query<ExitOfProcess>(database, {.run_id = run_id})) {
    exits.push_back({row.profile_id, row.ordinal, row.pid, row.rank, row.process_id,
                     std::string(row.host), row.started_us, row.ended_us, row.exit_code,
                     row.signal});
  }
  return exits;
}

std::string SignalName(std::int64_t number) {
  const char* const name = sigabbrev_np(static_cast<int>(number));
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string HowAllEnded(const std::vector<ProcessExit>& exits,
                        const std::vector<std::int64_t>& process_ids) {
  std::set<std::string> how;
  for (const std::int64_t id : process_ids) {
    const auto exit = std::find_if(exits.begin(), exits.end(),
                                   [id](const ProcessExit& one) { return one.process_id == id; });
    how.insert(exit == exits.end() ? std::string()
               : exit->signal      ? SignalName(*exit->signal)
               : exit->exit_code   ? fmt::format("exit code {}", *exit->exit_code)
                                   : std::string());
  }
  return how.size() == 1 ? *how.begin() : std::string();
}

}  // namespace tlparse
