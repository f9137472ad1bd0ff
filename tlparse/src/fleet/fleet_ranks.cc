// One run of a fleet: what is not alike on all of its ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "facts/cache/cache_lookups.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_changes.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Kind = FleetColumnOfAnswer::Kind;

std::string StateName(const std::string& number) {
  std::uint8_t state = 0;
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, state);
  const std::string_view name = error == std::errc() && rest == end
                                    ? Name(static_cast<CacheState>(state))
                                    : std::string_view();
  return name.empty() ? number : std::string(name);
}

Result<std::string> FindRunId(FleetReader& reader, const FleetQuestion& question) {
  if (!question.run_id.empty()) {
    if (!IsUuid(question.run_id))
      return Fail(ErrorCode::kUsage, fmt::format("'{}' is no id of a run", question.run_id));
    return question.run_id;
  }
  ASSIGN_OR_RETURN(
      const auto rows,
      reader.Rows(fmt::format("SELECT toString(run_id) AS run FROM {} WHERE state = 1 AND {} "
                              "ORDER BY day DESC, start_us DESC, pushed_us DESC, run LIMIT 1",
                              reader.From("push"), reader.Live(question)),
                  1));
  if (rows.empty())
    return Fail(ErrorCode::kNotFound,
                question.job.empty() ? "there is no run"
                                     : fmt::format("there is no run of job '{}'", question.job));
  return rows[0][0];
}

// A lookup by how it went on how many ranks.
struct LookupClass {
  std::string state, set, ranks, sample;
};

// The components in which two sets differ.
Result<std::vector<OneSided>> CompareSetsOnServer(FleetReader& reader, const std::string& a,
                                                  const std::string& b) {
  const auto members = [&](const std::string& key) {
    return fmt::format(
        "SELECT DISTINCT arrayJoin(components) AS component FROM {} WHERE key = unhex({})",
        reader.From("component_set"), QuoteText(key));
  };
  ASSIGN_OR_RETURN(
      const auto rows,
      reader.Rows(
          fmt::format("SELECT c.name, k, s "
                      "FROM (SELECT lower(hex(component)) AS k, component AS key, max(side) AS s "
                      "FROM (SELECT component, toUInt8(0) AS side FROM ({}) AS a "
                      "UNION ALL SELECT component, toUInt8(1) AS side FROM ({}) AS b) AS q "
                      "GROUP BY component "
                      "HAVING count() = 1) AS d ANY LEFT JOIN (SELECT key, min(name) AS name "
                      "FROM {} GROUP BY key) AS c USING key ORDER BY c.name, k LIMIT 2000",
                      members(a), members(b), reader.From("component")),
          3));
  std::vector<OneSided> components;
  for (const auto& row : rows)
    components.push_back({row[0], FromHex(row[1]).value_or(Hash128{}), row[2] == "1"});
  return components;
}

using NamedCause = std::pair<std::string, std::string>;  // kind, sentence
// By the two sets that were compared.
using KnownCauses = std::map<std::pair<std::string, std::string>, NamedCause>;

// Why lookups of `one` differ from those of most ranks.
Result<NamedCause> CauseOf(FleetReader& reader, const LookupClass& most, const LookupClass& one,
                           KnownCauses& causes) {
  const auto has_none = [](const LookupClass& lookup) {
    return lookup.set.find_first_not_of('0') == std::string::npos;
  };
  if (one.set == most.set) {
    if (has_none(one))
      return NamedCause(Name(CauseKind::kUnknown),
                        "another answer of the cache; the log has no components of the key");
    return NamedCause(Name(CauseKind::kStorage),
                      "the same components of the key, another answer of the cache");
  }
  if (has_none(one) || has_none(most))
    return NamedCause(Name(CauseKind::kUnknown),
                      "the log has no components of the key on one side");
  NamedCause& known = causes[{most.set, one.set}];
  if (known.first.empty()) {
    ASSIGN_OR_RETURN(const auto components, CompareSetsOnServer(reader, most.set, one.set));
    ASSIGN_OR_RETURN(auto differences, ToDifferences(reader, components));
    const std::vector<Cause> found = FindCauses(std::move(differences), {});
    known = found.empty()
                ? NamedCause(Name(CauseKind::kUnknown), "no component that was pushed differs")
                : NamedCause(Name(found.front().kind), found.front().text);
  }
  return known;
}

Result<FleetSection> Lookups(FleetReader& reader, const std::string& run) {
  ASSIGN_OR_RETURN(
      const auto rows,
      reader.Rows(
          fmt::format(
              "SELECT label, generation, function, "
              "layer, direction, lookup_ordinal, state, lower(hex(component_set_hash)) AS s, "
              "uniqExact(load_id, process_id) AS n, arrayStringConcat(arrayMap(r -> toString(r), "
              "arraySlice(arraySort(groupUniqArray(process_rank)), 1, 8)), ',') "
              "FROM {} WHERE {} AND label != '' "
              "GROUP BY label, generation, function, layer, direction, lookup_ordinal, state, s "
              "ORDER BY label, "
              "generation, function, layer, direction, lookup_ordinal, n DESC, state, s",
              reader.From("cache_event"), reader.LiveRun(run)),
          10));
  std::map<std::vector<std::string>, std::vector<LookupClass>> lookups;
  for (const auto& row : rows)
    lookups[{row[0], row[1], row[3], row[4], row[5]}].push_back({row[6], row[7], row[8], row[9]});
  FleetSection section{"lookups",
                       {{"label"},
                        {"generation", Kind::kInt},
                        {"layer"},
                        {"direction"},
                        {"ordinal", Kind::kInt},
                        {"state"},
                        {"ranks", Kind::kInt},
                        {"first_ranks"},
                        {"cause"},
                        {"text"}},
                       {}};
  // Many ranks part for the same reason: each pair of sets is compared once.
  KnownCauses causes;
  for (const auto& [slot, classes] : lookups) {
    if (classes.size() < 2) continue;
    const LookupClass& most = classes.front();
    for (const LookupClass& one : classes) {
      std::string kind, text;
      if (&one != &most) {
        ASSIGN_OR_RETURN(std::tie(kind, text), CauseOf(reader, most, one, causes));
      }
      section.rows.push_back({slot[0], slot[1], slot[2], slot[3], slot[4], StateName(one.state),
                              one.ranks, one.sample,
                              kind.empty() ? std::nullopt : std::optional(kind),
                              text.empty() ? std::nullopt : std::optional(text)});
    }
  }
  return section;
}

Result<FleetSection> Compiles(FleetReader& reader, const std::string& run) {
  return reader.Read(
      "compile_classes",
      {{"processes", Kind::kInt}, {"first_ranks"}, {"compiles", Kind::kInt}, {"labels"}},
      fmt::format(
          "SELECT count() AS n, arrayStringConcat(arrayMap(r -> toString(r), "
          "arraySlice(arraySort(groupUniqArray(r)), 1, 8)), ','), c, labels "
          "FROM (SELECT any(process_rank) AS r, count() AS c, "
          "arrayStringConcat(arraySort(groupArray(concat(label, if(generation = 0, '', concat('~', "
          "toString(generation))), ' ', ifNull(function, ''), if(status = 'ok', '', concat(' ', "
          "status))))), ', ') AS labels FROM {} WHERE {} GROUP BY load_id, process_id) AS p "
          "GROUP BY c, labels ORDER BY n DESC, labels",
          reader.From("compile"), reader.LiveRun(run)));
}

Result<FleetSection> Collectives(FleetReader& reader, const std::string& run) {
  ASSIGN_OR_RETURN(
      FleetSection all,
      reader.Read(
          "collectives",
          {{"label"},
           {"function"},
           {"direction"},
           {"source"},
           {"content_hash"},
           {"processes", Kind::kInt},
           {"first_ranks"}},
          fmt::format("SELECT label, function, direction, if(source = 0, 'schedule', 'code'), "
                      "lower(hex(content_hash)) AS h, uniqExact(load_id, process_id) AS n, "
                      "arrayStringConcat(arrayMap(r -> toString(r), "
                      "arraySlice(arraySort(groupUniqArray(process_rank)), 1, 8)), ',') "
                      "FROM {} WHERE {} GROUP BY label, function, direction, source, h "
                      "ORDER BY label, function, direction, source, n DESC, h",
                      reader.From("collective_use"), reader.LiveRun(run))));
  // Only graphs with more than one schedule.
  std::map<std::vector<std::string>, int> counts;
  const auto key = [](const auto& row) {
    return std::vector<std::string>{row[0].value_or(""), row[1].value_or(""), row[2].value_or(""),
                                    row[3].value_or("")};
  };
  for (const auto& row : all.rows) ++counts[key(row)];
  std::erase_if(all.rows, [&](const auto& row) { return counts[key(row)] < 2; });
  return all;
}

// The number of ranks with more than one process.
Result<std::int64_t> RepeatedRanks(FleetReader& reader, const std::string& run) {
  ASSIGN_OR_RETURN(const auto rows,
                   reader.Rows(fmt::format("SELECT toString(count()) FROM (SELECT rank "
                                           "FROM {} WHERE {} AND rank IS NOT NULL "
                                           "GROUP BY rank HAVING count() > 1) AS p",
                                           reader.From("process"), reader.LiveRun(run)),
                               1));
  return rows.empty() ? 0 : std::strtoll(rows[0][0].c_str(), nullptr, 10);
}

}  // namespace

Result<FleetAnswer> FleetRanks(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  ASSIGN_OR_RETURN(const std::string run, FindRunId(reader, question));
  ASSIGN_OR_RETURN(
      FleetSection loads,
      reader.Read("run",
                  {{"job"},
                   {"day"},
                   {"run_id"},
                   {"run_name"},
                   {"loads", Kind::kInt},
                   {"ranks", Kind::kInt}},
                  fmt::format("SELECT job, toString(day), "
                              "toString(run_id) AS run, min(run_name), count(), sum(ranks) "
                              "FROM {} WHERE state = 1 AND {} GROUP BY job, day, run_id",
                              reader.From("push"), reader.LiveRun(run))));
  if (loads.rows.empty()) return Fail(ErrorCode::kNotFound, fmt::format("there is no run {}", run));
  answer.sections.push_back(std::move(loads));
  ASSIGN_OR_RETURN(FleetSection compiles, Compiles(reader, run));
  if (compiles.rows.size() < 2) compiles.rows.clear();
  answer.sections.push_back(std::move(compiles));
  ASSIGN_OR_RETURN(FleetSection lookups, Lookups(reader, run));
  answer.sections.push_back(std::move(lookups));
  ASSIGN_OR_RETURN(FleetSection collectives, Collectives(reader, run));
  answer.sections.push_back(std::move(collectives));
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "slowest_ranks",
      {{"rank", Kind::kInt}, {"compiles", Kind::kInt}, {"compile_s", Kind::kReal}},
      fmt::format(
          "SELECT min(process_rank) AS r, count(), round({} / 1e6, 6) AS t "
          "FROM {} WHERE {} GROUP BY load_id, process_id HAVING {} ORDER BY t DESC, r LIMIT 5",
          kProcessCompileUs, reader.From("compile"), reader.LiveRun(run), kHasAllTimes)));
  const bool is_alike =
      std::all_of(answer.sections.begin() + 1, answer.sections.begin() + 4,
                  [](const FleetSection& section) { return section.rows.empty(); });
  const std::int64_t ranks =
      std::strtoll(answer.sections[0].rows[0][5].value_or("0").c_str(), nullptr, 10);
  if (ranks < 2) {
    answer.notes.emplace_back("fewer than two ranks have logs: there is nothing to compare");
  } else if (is_alike) {
    answer.notes.emplace_back("compiles, lookups and collectives are alike on all ranks");
  }
  ASSIGN_OR_RETURN(const std::int64_t repeated, RepeatedRanks(reader, run));
  if (repeated > 0)
    answer.notes.push_back(
        fmt::format("{} {} several processes, of several launches or of hosts that number their "
                    "ranks alike; all "
                    "are compared here. 'tlparse ranks' compares those of one launch",
                    repeated, repeated == 1 ? "rank has" : "ranks have"));
  answer.notes.emplace_back("'tlparse ranks' prints more about the run when it was pulled");
  return answer;
}

}  // namespace tlparse
