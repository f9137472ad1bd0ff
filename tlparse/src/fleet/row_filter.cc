#include "fleet/row_filter.h"

#include <fmt/format.h>

#include "facts/collectives/issued.h"
#include "facts/ranks/rank_facts.h"
#include "log/pytorch_names.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

// Events that never ended, and those whose begin is lost.
constexpr std::string_view kUnpaired =
    "SELECT record_id FROM chromium_event_row WHERE phase IN (66, 69)";
// Compiles on other ranks are matched by their labels.
constexpr std::string_view kUnfinishedLabels =
    "SELECT label FROM compile WHERE status = 'unfinished'";
// Of the compiles in which a log may end: whether they have events, and which of these are closed.
constexpr std::string_view kPerhapsUnfinished =
    "SELECT id FROM compile WHERE status = 'unfinished' OR first_record_id = last_record_id "
    "UNION SELECT compile_id FROM chromium_event_row WHERE phase = 66";
// Names of the innermost events that are open at the ends of logs.
constexpr std::string_view kOpenNames =
    "SELECT e.name_id FROM rank_status s "
    "JOIN chromium_event_row e ON e.record_id = s.open_record_id "
    "WHERE s.compile_id IN (SELECT compile_id FROM chromium_event_row WHERE phase = 66)";
// The first event of each thread of a process, and of each name that this program does not know: it
// lists and counts these.
constexpr std::string_view kFirstEvents =
    "SELECT min(record_id) FROM (SELECT e.record_id, p.process_id, e.tid, "
    "iif(e.name_id IN ({0}), 0, e.name_id) AS unknown_name FROM chromium_event_row e "
    "JOIN record_row p ON p.id = e.record_id WHERE e.tid IS NOT NULL OR e.name_id NOT IN ({0})) "
    "GROUP BY process_id, tid, unknown_name";
// The pass of Inductor that was run last in each compile that failed.
constexpr std::string_view kLastPasses =
    "SELECT max(e.record_id) FROM chromium_event_row e JOIN text_row n ON n.id = e.name_id "
    "WHERE n.text LIKE 'pass.%' AND e.compile_id IN (SELECT compile_id FROM failure_row) "
    "GROUP BY e.compile_id";
// How long each rank was silent in an event of an unfinished compile shows whether the end of a log
// in that event stands out. Of the records within such an event, those that show the longest
// silence: the first and the last record in each piece of half its length.
constexpr std::string_view kSilences =
    "SELECT id FROM (SELECT id, piece, lag(piece) OVER w AS before, lead(piece) OVER w AS after "
    "FROM (SELECT event_id, id, "
    "local_us / max(1, max(silence_us) OVER (PARTITION BY event_id) / 2) AS piece "
    "FROM (SELECT e.record_id AS event_id, s.id, s.local_us, "
    "s.local_us - lag(s.local_us) OVER (PARTITION BY e.record_id ORDER BY s.id) AS silence_us "
    "FROM compile c CROSS JOIN chromium_event_row e ON e.record_id BETWEEN c.first_record_id "
    "AND c.last_record_id AND e.compile_id = c.id AND e.phase IN (66, 88) "
    "CROSS JOIN record_row s ON s.process_id = c.process_id "
    "AND s.id BETWEEN coalesce(e.begin_record_id, e.record_id) "
    "AND iif(e.phase = 88, e.record_id, c.last_record_id) "
    "WHERE c.label IN ({}) AND e.name_id IN ({}))) "
    "WINDOW w AS (PARTITION BY event_id ORDER BY id)) "
    "WHERE piece IS NOT before OR piece IS NOT after";
// What a process compiled while others waited for it in a collective, and when it was silent: the
// first and the last record of each compile in each piece of time.
constexpr std::string_view kOfIssuers =
    "SELECT id FROM (SELECT id, piece, compile_id, lag(piece) OVER w AS before, "
    "lead(piece) OVER w AS after, lag(compile_id) OVER w AS compile_before, "
    "lead(compile_id) OVER w AS compile_after FROM (SELECT s.id, s.process_id, "
    "coalesce(s.compile_id, 0) AS compile_id, s.local_us / {} AS piece FROM process q "
    "CROSS JOIN record_row s ON s.id BETWEEN q.first_record_id AND q.last_record_id "
    "AND s.process_id = q.id "
    "WHERE q.id IN (SELECT process_id FROM profile "
    "UNION SELECT p.process_id FROM issued_collective_row i "
    "JOIN record_row p ON p.id = i.record_id)) "
    "WINDOW w AS (PARTITION BY process_id ORDER BY id)) "
    "WHERE piece IS NOT before OR piece IS NOT after "
    "OR compile_id <> compile_before OR compile_id <> compile_after";

// Ids of the names of events that this program knows.
std::string KnownNameIds() {
  std::string plain, patterns;
  for (const PytorchName& name : KnownNames(PytorchNameKind::kPhase)) {
    if (name.name.find('*') == name.name.npos) {
      plain += fmt::format("{}'{}'", plain.empty() ? "" : ", ", name.name);
    } else {
      patterns += fmt::format(" UNION ALL SELECT id FROM text_row WHERE text GLOB '{}'", name.name);
    }
  }
  return fmt::format("SELECT id FROM text_row WHERE text IN ({}){}", plain, patterns);
}

std::string Events() {
  // The time that a measured process spent compiling is that of its events of any length.
  return fmt::format(
      "(r.phase IN (66, 69) OR r.duration_us >= {} OR r.compile_id IN ({}) "
      "OR (r.name_id IN ({}) AND r.compile_id IN (SELECT id FROM compile WHERE label IN ({}))) "
      "OR r.compile_id IN (SELECT id FROM compile "
      "WHERE process_id IN (SELECT process_id FROM profile)) "
      "OR r.name_id NOT IN ({}) OR r.record_id IN ({}) OR r.record_id IN ({}))",
      kLeastNamedEventUs, kPerhapsUnfinished, kOpenNames, kUnfinishedLabels, KnownNameIds(),
      fmt::format(kFirstEvents, KnownNameIds()), kLastPasses);
}

std::string Records() {
  return fmt::format(
      "(r.kind_id IS NULL OR r.kind_id > {} OR r.kind_id IN ({}, {}) OR r.id IN ({}) "
      "OR r.id IN (SELECT last_record_id FROM compile UNION SELECT last_record_id FROM process) "
      "OR r.id IN (SELECT record_id FROM import_log_row) OR r.id IN ({}) OR r.id IN ({}) "
      "OR r.id IN ({}))",
      static_cast<int>(kTextCreateUnbackedSymbol), static_cast<int>(kTextDescribeTensor),
      static_cast<int>(kTextDescribeSource), kUnpaired, fmt::format(kFirstEvents, KnownNameIds()),
      fmt::format(kSilences, kUnfinishedLabels, kOpenNames),
      fmt::format(kOfIssuers, kShortestTimeUs));
}

}  // namespace

std::string RowsThatAnswersRead(const FleetTable& table, const RowOptions& options) {
  if (options.with_records) return {};
  if (table.name == "chromium_event") return Events();
  if (table.name == "record") return Records();
  return {};
}

}  // namespace tlparse
