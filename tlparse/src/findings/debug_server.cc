// Dumps of the debug server of torch.distributed in which a rank is elsewhere while the others wait in a
// collective. One is a moment: ranks of a healthy job differ in it too. That they stand where they stood
// in the dumps before says more.
#include "queries/findings/debug_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "facts/job/hangs.h"
#include "findings/context.h"
#include "findings/waiting_ranks.h"

namespace tlparse {
namespace {

constexpr std::size_t kFewestDumps = 3;

// Where a rank was in one dump; without stacks: its error.
struct ServerRank {
  std::string where, error;
  bool is_in_collective = false;
  bool operator==(const ServerRank&) const = default;
};

struct ServerDump {
  std::int64_t id = 0;
  std::string taken_at;
  std::map<std::int64_t, ServerRank> ranks;
};

// Those that say the same as the last one, and follow each other; the latest first.
Result<std::vector<ServerDump>> LoadEqualDumps(FindingContext& context) {
  std::vector<ServerDump> dumps;
  FOR_EACH_ROW(const DebugServerDump& row,
               Query<DebugServerDump>(context.database, {.run_id = context.job.run_id()}))
    dumps.push_back({row.id, std::string(row.taken_at), {}});
  std::size_t equal = 0;
  for (ServerDump& dump : dumps) {
    FOR_EACH_ROW(const DebugServerRank& row,
                 Query<DebugServerRank>(context.database, {.dump_id = dump.id}))
      dump.ranks[row.rank] = {std::string(row.stopped_at), std::string(row.error),
                              row.is_in_collective};
    if (dump.ranks != dumps.front().ranks) break;
    ++equal;
  }
  dumps.resize(equal);
  return dumps;
}

// The ranks of a dump by what they do.
struct ServerSides {
  std::vector<HangPlace> waiting, elsewhere;  // by place
  std::vector<std::int64_t> absent, silent;   // elsewhere, or without an answer; without
  std::string error;                          // of one without
};

void AddTo(std::vector<HangPlace>& places, std::int64_t rank, const std::string& where) {
  for (HangPlace& place : places) {
    if (place.where != where) continue;
    place.ranks.push_back(rank);
    place.who = RanksText(place.ranks);
    return;
  }
  places.push_back({{rank}, RanksText({rank}), where, {}});
}

ServerSides SidesOf(const ServerDump& dump) {
  ServerSides sides;
  for (const auto& [rank, one] : dump.ranks) {
    if (one.error.empty() && one.where.empty()) continue;  // where it was is not known
    if (one.error.empty())
      AddTo(one.is_in_collective ? sides.waiting : sides.elsewhere, rank, one.where);
    if (!one.is_in_collective) sides.absent.push_back(rank);
    if (!one.error.empty()) sides.silent.push_back(rank);
    if (sides.error.empty()) sides.error = one.error;
  }
  return sides;
}

// "rank 1 was at load.py:6"
std::string PlacesOf(const std::vector<HangPlace>& places, std::string_view is,
                     std::string_view are) {
  std::string text;
  for (const HangPlace& one : places)
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", one.who,
                        one.HasSeveral() ? are : is, one.ShortWhere());
  return text;
}

Finding FindingOf(const std::vector<ServerDump>& dumps, const ServerSides& sides) {
  Finding finding;
  finding.kind = FindingKind::kStuck;
  finding.severity = FindingSeverity::kWarning;
  finding.cause = "elsewhere in all dumps";
  finding.ranks = sides.absent;
  finding.rank_count = sides.absent.size();
  const std::string who = RanksText(sides.absent);
  std::string absent = PlacesOf(sides.elsewhere, "was", "were");
  if (!sides.silent.empty())
    absent += fmt::format("{}{} did not answer ({})", absent.empty() ? "" : ", ",
                          RanksText(sides.silent), sides.error);
  finding.title = fmt::format("{} in each of {} dumps of the debug server, while {}", absent,
                              dumps.size(), PlacesOf(sides.waiting, "waited", "waited"));
  finding.title[0] = 'R';
  for (const std::vector<HangPlace>* const places : {&sides.elsewhere, &sides.waiting})
    for (const HangPlace& one : *places)
      finding.detail += fmt::format("R{} {} at {}. ", one.who.substr(1),
                                    one.HasSeveral() ? "were" : "was", one.where);
  if (!dumps.front().taken_at.empty() && !dumps.back().taken_at.empty())
    finding.detail += fmt::format("The dumps are of {} to {}, by the clock of the server. ",
                                  dumps.back().taken_at, dumps.front().taken_at);
  finding.detail += "A rank that is only slow looks the same.";
  if (!sides.elsewhere.empty()) {
    finding.place = PlaceOfStack(sides.elsewhere.front().where);
    finding.suggestion =
        fmt::format("look at what keeps {} there, and whether it waits itself", who);
  } else {
    finding.suggestion = fmt::format(
        "look whether {} lives: a process that has ended, or that holds Python's lock in C++, "
        "does not answer",
        who);
  }
  finding.query =
      fmt::format("SELECT * FROM debug_server_rank WHERE dump_id = {}", dumps.front().id);
  return finding;
}

}  // namespace

Result<void> FindDebugServerPlaces(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<ServerDump> dumps, LoadEqualDumps(context));
  if (dumps.size() < kFewestDumps) return {};
  const ServerSides sides = SidesOf(dumps.front());
  const std::size_t known = dumps.front().ranks.size();
  constexpr std::size_t kMostPlaces = 3;
  if (sides.waiting.empty() || sides.absent.empty() || sides.absent.size() * 2 > known ||
      sides.waiting.size() + sides.elsewhere.size() > kMostPlaces)
    return {};
  Finding finding = FindingOf(dumps, sides);
  const auto same =
      std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& one) {
        return one.severity == FindingSeverity::kError && one.ranks == finding.ranks;
      });
  if (same != context.findings.end())
    same->evidence.push_back(std::move(finding));
  else
    context.findings.push_back(std::move(finding));
  return {};
}

}  // namespace tlparse
