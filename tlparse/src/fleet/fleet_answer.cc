#include "fleet/fleet_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleet/cache_states.h"
#include "fleet/push_log.h"
#include "fleet/server_tables.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Kind = FleetColumnOfAnswer::Kind;

// Codes of functions with the version of torch of the processes that generated them: a row for each
// run, or for each process of a load with several versions. Job, day and run follow from the load:
// joined afterwards, they need not be grouped by, which takes most of the time.
std::string CodesByVersion(const FleetReader& reader, const std::string& live) {
  const std::string loads = fmt::format(
      "SELECT load_id, job, day, run_id, min(v) AS torch_version, uniqExact(v) AS versions "
      "FROM (SELECT job, day, run_id, load_id, ifNull(torch_version, '') AS v FROM {} WHERE {}) "
      "AS q GROUP BY job, day, run_id, load_id",
      reader.From("process"), live);
  // PREWHERE: other columns are read only where such loads are, which are few.
  const std::string of_several = fmt::format(
      "PREWHERE load_id GLOBAL IN (SELECT load_id FROM ({}) AS l WHERE versions > 1) WHERE {}",
      loads, live);
  // By a hash of the four: grouping by two numbers takes half of the time.
  return fmt::format(
      "SELECT job, f AS function, l AS label, d AS direction, torch_version, day, run_id, "
      "c AS content_hash FROM (SELECT any(function) AS f, any(label) AS l, any(direction) AS d, "
      "load_id, any(content_hash) AS c FROM {0} WHERE {2} "
      "GROUP BY load_id, cityHash64(function, label, direction, content_hash)) AS u "
      "ALL INNER JOIN (SELECT load_id, job, day, run_id, torch_version FROM ({3}) AS l "
      "WHERE versions = 1) AS p USING load_id "
      "UNION ALL SELECT job, function, label, direction, torch_version, day, run_id, content_hash "
      "FROM (SELECT function, label, direction, load_id, process_id, content_hash FROM {0} {4} "
      "GROUP BY function, label, direction, load_id, process_id, content_hash) AS u "
      "ALL INNER JOIN (SELECT load_id, id AS process_id, job, day, run_id, "
      "ifNull(torch_version, '') AS torch_version FROM {1} {4}) AS p USING load_id, process_id",
      reader.From("output_code"), reader.From("process"), live, loads, of_several);
}

}  // namespace

Result<FleetReader> FleetReader::Make(const std::vector<ClickHouseOptions>& servers) {
  if (servers.empty()) return Fail(ErrorCode::kUsage, "--url is missing");
  ASSIGN_OR_RETURN(ClickHouseClient client, ClickHouseClient::Make(servers.front()));
  ASSIGN_OR_RETURN(const bool has_shards, HasDistributedTables(client));
  if (servers.size() > 1 && !has_shards)
    return Fail(
        ErrorCode::kUsage,
        "several servers answer together only as a cluster: 'tlparse fleet init --cluster NAME' "
        "makes the tables for that; or ask one at a time");
  return FleetReader(std::move(client), has_shards);
}

std::string FleetReader::From(std::string_view table) const {
  return QuoteName(std::string(table) + (has_shards_ ? "_all" : ""));
}

std::string FleetReader::Live(const FleetQuestion& question) const {
  std::string where = "day >= " + QuoteDay(question.since_day);
  if (!question.job.empty()) where = "job = " + QuoteText(question.job) + " AND " + where;
  return fmt::format("{0} AND load_id GLOBAL IN ({1})", where, LiveLoadsSql(From("push"), where));
}

std::string FleetReader::LiveRun(const std::string& run_id) const {
  const std::string where = "run_id = " + QuoteUuid(run_id);
  return fmt::format(
      "job GLOBAL IN (SELECT job FROM {2} WHERE {0}) AND {0} AND load_id GLOBAL IN ({1})", where,
      LiveLoadsSql(From("push"), where), From("push"));
}

Result<std::vector<std::vector<std::string>>> FleetReader::Rows(const std::string& sql,
                                                                std::size_t columns) {
  ASSIGN_OR_RETURN(const std::string answer, client_.Query(sql + " FORMAT TabSeparated"));
  return ParseTabSeparated(answer, columns);
}

Result<FleetSection> FleetReader::Read(std::string name, std::vector<FleetColumnOfAnswer> columns,
                                       const std::string& sql) {
  FleetSection section{std::move(name), std::move(columns), {}};
  ASSIGN_OR_RETURN(auto rows, Rows(sql, section.columns.size()));
  for (std::vector<std::string>& row : rows) {
    std::vector<std::optional<std::string>>& cells = section.rows.emplace_back();
    for (std::string& cell : row)
      cells.push_back(cell == "\\N" ? std::nullopt : std::optional(std::move(cell)));
  }
  return section;
}

Result<void> FleetReader::ReadInto(FleetAnswer& answer, std::string name,
                                   std::vector<FleetColumnOfAnswer> columns,
                                   const std::string& sql) {
  ASSIGN_OR_RETURN(FleetSection section, Read(std::move(name), std::move(columns), sql));
  answer.sections.push_back(std::move(section));
  return {};
}

Result<FleetAnswer> FleetJobs(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "runs",
      {{"job"},
       {"day"},
       {"run_id"},
       {"run_name"},
       {"loads", Kind::kInt},
       {"ranks", Kind::kInt},
       {"start_us", Kind::kInt},
       {"torch_versions"},
       {"tags"}},
      fmt::format(
          "SELECT job, toString(day), toString(run_id) AS run, min(run_name), count(), sum(ranks), "
          "min(start_us), arrayStringConcat(arraySort(groupUniqArrayArray(torch_versions)), ', '), "
          "arrayStringConcat(arraySort(groupUniqArrayArray(arrayMap((k, "
          "v) -> concat(k, '=', v), tag_keys, tag_values))), ', ') FROM {} WHERE state = 1 AND {} "
          "GROUP BY job, day, run_id ORDER BY day DESC, min(start_us) DESC, job, run LIMIT {}",
          reader.From("push"), reader.Live(question), question.limit)));
  return answer;
}

Result<FleetAnswer> FleetCache(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  const std::string live = reader.Live(question);
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "hit_rates",
      {{"job"},
       {"day"},
       {"layer"},
       {"lookups", Kind::kInt},
       {"hits", Kind::kInt},
       {"misses", Kind::kInt},
       {"bypassed", Kind::kInt},
       {"hit_rate", Kind::kReal}},
      // Job and day follow from the load: grouping by three numbers takes a third of the time.
      fmt::format(
          "SELECT job, toString(day) AS d, l AS layer, sum(n), sumIf(n, state IN {4}) AS hits, "
          "sumIf(n, state IN {5}) AS misses, sumIf(n, state IN {6}), "
          "if(hits + misses = 0, NULL, round(hits / (hits + misses), 4)) "
          "FROM (SELECT load_id, state, any(layer) AS l, count() AS n "
          "FROM {0} WHERE {2} GROUP BY load_id, state, cityHash64(layer)) AS c "
          "ALL INNER JOIN (SELECT DISTINCT load_id, job, day "
          "FROM {1} WHERE state = 1 AND {2}) AS p USING load_id "
          "GROUP BY job, day, l ORDER BY d DESC, job, layer LIMIT {3}",
          reader.From("cache_event"), reader.From("push"), live, question.limit, StatesThat(IsHit),
          StatesThat(IsMiss), StatesThat(IsBypass))));
  // What appears on a later day than a job's first one has changed since.
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "changing_components",
      {{"name"}, {"changes", Kind::kInt}, {"days", Kind::kInt}, {"jobs", Kind::kInt}},
      fmt::format(
          "SELECT name, count() AS changes, uniqExact(since), uniqExact(job) "
          "FROM (SELECT job, name, component, min(day) AS since FROM {0} WHERE {1} "
          "GROUP BY job, name, component) AS c ALL INNER JOIN (SELECT job, min(day) AS first "
          "FROM {0} WHERE {1} GROUP BY job) AS j USING job "
          "WHERE since > first GROUP BY name ORDER BY changes DESC, name LIMIT {2}",
          reader.From("run_component"), live, question.limit)));
  return answer;
}

Result<FleetAnswer> FleetBreaks(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "graph_breaks",
      {{"reason"},
       {"file"},
       {"line", Kind::kInt},
       {"function"},
       {"count", Kind::kInt},
       {"runs", Kind::kInt},
       {"jobs", Kind::kInt},
       {"compile_s", Kind::kReal}},
      fmt::format("SELECT reason, user_file, user_line, min(function) AS f, count() AS n, "
                  "uniqExact(run_id), uniqExact(job), if(count(compile_us) = 0, NULL, "
                  "round(sum(ifNull(compile_us, 0)) / 1e6, 6)) AS cost "
                  "FROM {} WHERE {} GROUP BY reason, user_file, user_line "
                  "ORDER BY cost DESC, n DESC, reason, user_file, user_line LIMIT {}",
                  reader.From("graph_break"), reader.Live(question), question.limit)));
  answer.notes.emplace_back(
      "compile_s: time of the compiles in which the break happened, once for each break, as far as "
      "their logs have it");
  return answer;
}

Result<FleetAnswer> FleetRecompiles(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  // A compile has a reason for each earlier compile that was tried; the first is that of the latest.
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "recompiles",
      {{"function"},
       {"guard"},
       {"file"},
       {"line", Kind::kInt},
       {"reason"},
       {"count", Kind::kInt},
       {"runs", Kind::kInt},
       {"jobs", Kind::kInt},
       {"compile_s", Kind::kReal}},
      fmt::format("SELECT function, guard, user_file, user_line, min(reason), count() AS n, "
                  "uniqExact(run_id), uniqExact(job), if(count(compile_us) = 0, NULL, "
                  "round(sum(ifNull(compile_us, 0)) / 1e6, 6)) AS cost "
                  "FROM {} WHERE {} AND ordinal = 0 GROUP BY function, guard, user_file, user_line "
                  "ORDER BY cost DESC, n DESC, function, guard, user_file, user_line LIMIT {}",
                  reader.From("recompile"), reader.Live(question), question.limit)));
  answer.notes.emplace_back(
      "compile_s: time of the compiles that the guard made necessary, as far as their logs have "
      "it");
  return answer;
}

Result<FleetAnswer> FleetKernel(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  const std::string name = QuoteText(question.kernel);
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "runs",
      {{"job"},
       {"day"},
       {"run_id"},
       {"functions"},
       {"graphs", Kind::kInt},
       {"processes", Kind::kInt}},
      fmt::format("SELECT job, toString(day) AS d, toString(run_id) AS run, "
                  "arrayStringConcat(arraySort(groupUniqArray(function)), ', '), "
                  "count(), uniqExact(load_id, process_id) FROM {} "
                  "WHERE {} AND provenance_content_hash GLOBAL IN (SELECT content_hash FROM {} "
                  "WHERE name = {}) GROUP BY job, day, run_id ORDER BY d DESC, job, run LIMIT {}",
                  reader.From("graph"), reader.Live(question), reader.From("kernel"), name,
                  question.limit)));
  // The innermost frame of each stack, in the code of these runs.
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "lines", {{"file"}, {"line", Kind::kInt}, {"function"}, {"code"}},
      fmt::format("SELECT DISTINCT file, line, function, code "
                  "FROM (SELECT argMax(ifNull(file, ''), frame_ordinal) AS file, "
                  "argMax(ifNull(line, 0), frame_ordinal) AS line, argMax(ifNull(function, ''), "
                  "frame_ordinal) AS function, argMax(ifNull(code, ''), frame_ordinal) AS code "
                  "FROM (SELECT * "
                  "FROM {0} WHERE (content_hash, content_version, kernel_id) GLOBAL IN ("
                  "SELECT content_hash, content_version, id FROM {1} WHERE name = {2} "
                  "AND content_hash GLOBAL IN (SELECT provenance_content_hash FROM {4} WHERE {5} "
                  "AND provenance_content_hash GLOBAL IN (SELECT content_hash FROM {1} "
                  "WHERE name = {2})))) AS s "
                  "GROUP BY content_hash, content_version, kernel_id, stack_ordinal) AS q "
                  "ORDER BY file, line, function, code LIMIT {3}",
                  reader.From("kernel_source"), reader.From("kernel"), name, question.limit,
                  reader.From("graph"), reader.Live(question))));
  return answer;
}

Result<FleetAnswer> FleetCode(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  // Each code by the versions of torch that generated it; a function whose code is the same under all
  // of them is left out.
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "changed_codes",
      {{"job"},
       {"function"},
       {"label"},
       {"direction"},
       {"torch_version"},
       {"codes", Kind::kInt},
       {"content_hash"},
       {"runs", Kind::kInt},
       {"first_day"}},
      fmt::format(
          "SELECT job, function, label, direction, version, codes, code, runs, first "
          "FROM (SELECT job, function, label, direction, groupArray(torch_version) AS versions, "
          "groupArray(n) AS ns, groupArray(hashes) AS all_hashes, groupArray(run_count) "
          "AS run_counts, groupArray(first_day) AS firsts "
          "FROM (SELECT job, function, label, direction, torch_version, "
          "uniqExact(content_hash) AS n, arrayStringConcat(arraySort(arrayMap(h -> "
          "lower(hex(h)), groupUniqArray(content_hash))), ' ') AS hashes, uniqExact(run_id) "
          "AS run_count, toString(min(day)) AS first_day "
          "FROM ({0}) AS c "
          "GROUP BY job, function, label, direction, torch_version "
          "ORDER BY job, function, label, direction, torch_version) AS v "
          "GROUP BY job, function, label, direction HAVING uniqExact(hashes) > 1) AS w "
          "ARRAY JOIN versions AS version, ns AS codes, all_hashes AS code, run_counts AS runs, "
          "firsts AS first "
          "ORDER BY job, function, label, direction, version LIMIT {1}",
          CodesByVersion(reader, reader.Live(question)), question.limit)));
  const auto& rows = answer.sections.back().rows;
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row[4] == ""; }))
    answer.notes.emplace_back("no torch_version: the logs do not have it");
  answer.notes.emplace_back(
      "content_hash: of the code without addresses, paths and handles; 'tlparse diff' of two "
      "pulled runs shows the lines");
  return answer;
}

}  // namespace tlparse
