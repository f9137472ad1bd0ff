#include "facts/job/exits.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "facts/text/shorten.h"
#include "queries/facts/job/exits.h"

namespace tlparse {

std::string FatalException::Text() const {
  constexpr std::size_t kMostText = 160;
  const std::string_view first = std::string_view(message).substr(0, message.find('\n'));
  return Shorten(first.empty() ? type : fmt::format("{}: {}", type, first), kMostText);
}

// As gloo, NCCL and the store of PyTorch word it.
bool FatalException::ComesOfPeer() const {
  for (const std::string_view part :
       {"closed by peer", "reset by peer", "Broken pipe", "failed to recv, got 0 bytes",
        "a remote process exit", "remote process has terminated"}) {
    if (message.find(part) != std::string::npos) return true;
  }
  return false;
}

bool FatalException::IsTimeout() const {
  for (const std::string_view part : {"Timed out", "timed out", "timeout", "Timeout"}) {
    if (message.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string FatalException::Place() const {
  return file.empty() ? file : fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
}

std::vector<RaisedTogether> WhereTheyWaited(const std::vector<const FatalException*>& raised) {
  std::map<std::string, RaisedTogether> places;
  for (const FatalException* const one : raised) {
    if (!one->rank || one->file.empty() || (!one->IsTimeout() && !one->ComesOfPeer())) return {};
    RaisedTogether& place = places[one->Place()];
    place.place = one->Place();
    place.ranks.push_back(*one->rank);
    if (place.first == nullptr) place.first = one;
  }
  std::vector<RaisedTogether> sorted;
  for (auto& [name, place] : places) {
    std::sort(place.ranks.begin(), place.ranks.end());
    sorted.push_back(std::move(place));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RaisedTogether& a, const RaisedTogether& b) {
                     return a.ranks.size() > b.ranks.size();
                   });
  return sorted;
}

bool ProcessExit::WasAsked() const {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
         (raised && raised->type == "KeyboardInterrupt");
}

Result<std::vector<ProcessExit>> LoadExits(Database& database, std::int64_t run_id) {
  std::vector<ProcessExit> exits;
  FOR_EACH_ROW(const ExitOfProcess& row, KeptQuery<ExitOfProcess>(database, {.run_id = run_id})) {
    exits.push_back({row.profile_id, row.ordinal, row.pid, row.rank, row.process_id,
                     std::string(row.host), row.started_us, row.ended_us, row.exit_code, row.signal,
                     std::nullopt});
    if (row.exception_id)
      exits.back().raised = FatalException{*row.exception_id,
                                           row.rank,
                                           std::string(row.type),
                                           std::string(row.message),
                                           std::string(row.user_file),
                                           row.user_line,
                                           row.raised_us,
                                           std::string(row.path)};
  }
  return exits;
}

const ProcessExit& CauseOf(const std::vector<ProcessExit>& exits, const ProcessExit& first) {
  if (!first.raised || !first.raised->ComesOfPeer()) return first;
  bool is_later = false;
  for (const ProcessExit& one : exits) {
    const bool is_cause = is_later && one.HasFailed() && !one.WasAsked() &&
                          one.rank.has_value() == first.rank.has_value() &&
                          !(one.raised && one.raised->ComesOfPeer()) && one.host == first.host;
    if (is_cause && one.started_us.value_or(0) <= first.ended_us.value_or(INT64_MAX)) return one;
    is_later = is_later || &one == &first;
  }
  return first;
}

Result<PrintedFailures> LoadPrintedFailures(Database& database, std::int64_t run_id) {
  PrintedFailures failures;
  FOR_EACH_ROW(const PrintedException& row,
               KeptQuery<PrintedException>(database, {.run_id = run_id}))
    failures.raised.push_back({row.id, row.rank, std::string(row.type), std::string(row.message),
                               std::string(row.user_file), row.user_line, std::nullopt,
                               std::string(row.path)});
  FOR_EACH_ROW(const ReportedFailure& row, KeptQuery<ReportedFailure>(database, {.run_id = run_id}))
    failures.root = {row.id, row.rank, row.exit_code, std::string(row.path)};
  return failures;
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
