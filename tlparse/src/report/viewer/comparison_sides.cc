#include "report/viewer/comparison_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "facts/job/participants.h"
#include "facts/ranks/ranks.h"
#include "queries/report/viewer/comparison_sides.h"

namespace tlparse {
namespace {

// Of what a page of files holds.
constexpr std::size_t kMostSides = 4, kMostLaunches = 6;

Error NoSuchSide(std::string_view side) {
  return {ErrorCode::kNotFound, fmt::format("there is no '{}' to compare", side.substr(0, 60))};
}

Result<DiffSide> SideOfRun(Database& database, std::int64_t run_id) {
  DiffSide side;
  side.database = &database;
  ASSIGN_OR_RETURN(side.run, NameOfRun(database, run_id));
  if (side.run.empty()) return Fail(ErrorCode::kNotFound, "there is no such run");
  return side;
}

// `known`: a job that is loaded; it may be another one, or none.
Result<DiffSide> SideOfParticipant(Database& database, std::int64_t run_id, std::int64_t process,
                                   const std::shared_ptr<const Job>& known) {
  ASSIGN_OR_RETURN(DiffSide side, SideOfRun(database, run_id));
  ASSIGN_OR_RETURN(
      const FirstRow<SideOfProcess> found,
      First(Query<SideOfProcess>(database, {.run_id = run_id, .process_id = process})));
  if (!found) return Fail(ErrorCode::kNotFound, "there is no such process");
  side.launch = found->launch;
  if (known && known->run_id() == run_id && known->launch() == side.launch) side.job = known;
  ASSIGN_OR_RETURN(side.job, JobOf(side));
  for (const JobParticipant& participant : side.job->participants()) {
    const std::vector<std::int64_t>& own = participant.process_ids;
    if (std::find(own.begin(), own.end(), process) != own.end()) side.rank = participant.name;
  }
  if (!side.rank) return Fail(ErrorCode::kNotFound, "the process is compared with none");
  return side;
}

Result<NamedSide> ParseSide(Database& database, std::int64_t run_id, std::string_view key,
                            const std::shared_ptr<const Job>& known = {}) {
  NamedSide named = {.key = std::string(key), .name = {}, .ranks = {}, .side = {}};
  std::int64_t id = 0;
  const std::string_view digits = key.empty() ? key : key.substr(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size() || id < 1)
    return tl::unexpected<Error>(NoSuchSide(key));
  if (key[0] == 'u') {
    ASSIGN_OR_RETURN(named.side, SideOfRun(database, id));
    named.name = "run " + named.side.run;
  } else if (key[0] == 'l') {
    ASSIGN_OR_RETURN(named.side, SideOfRun(database, run_id));
    named.side.launch = id;
    named.name = fmt::format("launch {}", id);
  } else if (key[0] == 'p') {
    ASSIGN_OR_RETURN(named.side, SideOfParticipant(database, run_id, id, known));
    named.name = named.side.rank->find_first_not_of("0123456789#") == std::string::npos
                     ? "rank " + *named.side.rank
                     : *named.side.rank;
  } else {
    return tl::unexpected<Error>(NoSuchSide(key));
  }
  return named;
}

// Each of a few ranks with each; of many, one of each class.
Result<SidePairs> PairsOfRanks(Database& database, std::int64_t run_id) {
  RanksOptions options;
  ASSIGN_OR_RETURN(options.run, NameOfRun(database, run_id));
  auto ranks = AnalyzeRanks(database, options);
  if (!ranks && ranks.error().code == ErrorCode::kNotFound) return SidePairs();
  if (!ranks) return tl::unexpected<Error>(ranks.error());
  const auto job = std::make_shared<const Job>(std::move(ranks->cache.job));
  const std::vector<JobParticipant>& participants = job->participants();
  std::vector<NamedSide> sides;
  const auto add = [&](RankIndex rank) -> Result<void> {
    const JobParticipant& one = participants[static_cast<std::size_t>(rank)];
    if (one.process_ids.empty()) return {};
    ASSIGN_OR_RETURN(NamedSide side,
                     ParseSide(database, run_id, fmt::format("p{}", one.process_ids.front()), job));
    sides.push_back(std::move(side));
    return {};
  };
  const bool is_each = participants.size() <= kMostSides;
  for (std::size_t i = 0; is_each && i < participants.size(); ++i)
    RETURN_IF_ERROR(add(static_cast<RankIndex>(i)));
  for (std::size_t i = 0; !is_each && i < ranks->classes.size() && i < kMostSides; ++i) {
    const std::vector<RankIndex>& own = ranks->classes[i].ranks;
    RETURN_IF_ERROR(add(own.front()));
    sides.back().ranks = job->FormatRanks(own);
    // Of ranks that are all equal, two: their times differ.
    if (ranks->classes.size() == 1) RETURN_IF_ERROR(add(own.back()));
  }
  SidePairs pairs;
  for (std::size_t b = 1; b < sides.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) pairs.emplace_back(sides[a], sides[b]);
  return pairs;
}

Result<SidePairs> PairsOfLaunches(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, run_id));
  SidePairs pairs;
  for (std::size_t b = launches.size(); b >= 2 && pairs.size() < kMostLaunches; --b) {
    ASSIGN_OR_RETURN(NamedSide a_side, ParseSide(database, run_id, fmt::format("l{}", b - 1)));
    ASSIGN_OR_RETURN(NamedSide b_side, ParseSide(database, run_id, fmt::format("l{}", b)));
    pairs.emplace_back(std::move(a_side), std::move(b_side));
  }
  return pairs;
}

// A run of one of several databases: "2:u3".
Result<NamedSide> ParseServedSide(const ComparedRun& run, std::string_view key) {
  const std::size_t colon = key.find(':');
  const NamedDatabase* found = nullptr;
  for (const NamedDatabase& one : run.served) {
    const bool is_meant = colon == std::string_view::npos
                              ? one.database == run.database
                              : fmt::format("{}", one.number) == key.substr(0, colon);
    if (is_meant) found = &one;
  }
  const std::string_view local = key.substr(colon == std::string_view::npos ? 0 : colon + 1);
  if (found == nullptr || !local.starts_with('u')) return tl::unexpected<Error>(NoSuchSide(key));
  ASSIGN_OR_RETURN(NamedSide side, ParseSide(*found->database, run.run_id, local));
  side.key = key;
  side.name += " of " + found->name;
  return side;
}

Result<SidePairs> PairsOfDatabases(const ComparedRun& run) {
  SidePairs pairs;
  bool is_after = false;  // the sides are in the order of the databases
  for (const NamedDatabase& one : run.served) {
    if (one.database == run.database) {
      is_after = true;
      continue;
    }
    ASSIGN_OR_RETURN(const std::int64_t latest, FindRun(*one.database, {}));
    ASSIGN_OR_RETURN(NamedSide own, ParseServedSide(run, fmt::format("u{}", run.run_id)));
    ASSIGN_OR_RETURN(NamedSide other,
                     ParseServedSide(run, fmt::format("{}:u{}", one.number, latest)));
    if (is_after) {
      pairs.emplace_back(std::move(own), std::move(other));
    } else {
      pairs.emplace_back(std::move(other), std::move(own));
    }
  }
  return pairs;
}

Result<SidePairs> PairsOfRuns(Database& database, std::int64_t run_id) {
  SidePairs pairs;
  ASSIGN_OR_RETURN(const FirstRow<RunBefore> before,
                   First(Query<RunBefore>(database, {.run_id = run_id})));
  if (!before || !before->id) return pairs;
  ASSIGN_OR_RETURN(NamedSide a, ParseSide(database, run_id, fmt::format("u{}", *before->id)));
  ASSIGN_OR_RETURN(NamedSide b, ParseSide(database, run_id, fmt::format("u{}", run_id)));
  pairs.emplace_back(std::move(a), std::move(b));
  return pairs;
}

}  // namespace

Result<SidePairs> FindPairs(const ComparedRun& run, std::string_view pair) {
  const std::int64_t run_id = run.run_id;
  Database& database = *run.database;
  if (pair == "ranks" || pair == "launches" || pair == "runs") {
    ASSIGN_OR_RETURN(const FirstRow<CollectivesOfReport> collectives,
                     First(Query<CollectivesOfReport>(database)));
    if (collectives->are_many) return SidePairs();
  }
  if (pair == "ranks") return PairsOfRanks(database, run_id);
  if (pair == "launches") return PairsOfLaunches(database, run_id);
  if (pair == "runs") return PairsOfRuns(database, run_id);
  if (pair == "databases") return PairsOfDatabases(run);
  const std::size_t dash = pair.find('-');
  if (dash == std::string_view::npos) return tl::unexpected<Error>(NoSuchSide(pair));
  SidePairs pairs;
  const bool is_served = pair.find(':') != std::string_view::npos;
  const auto parse = [&](std::string_view key, const std::shared_ptr<const Job>& known) {
    return is_served ? ParseServedSide(run, key) : ParseSide(database, run_id, key, known);
  };
  ASSIGN_OR_RETURN(NamedSide a, parse(pair.substr(0, dash), {}));
  ASSIGN_OR_RETURN(NamedSide b, parse(pair.substr(dash + 1), a.side.job));
  pairs.emplace_back(std::move(a), std::move(b));
  return pairs;
}

}  // namespace tlparse
