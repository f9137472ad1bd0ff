#include "answers/import_log/unknown_names.h"

#include <map>

#include "log/pytorch_names.h"

namespace tlparse {
namespace {

// Each query: kind, name, number of records, the first of them; of the records ?1 to ?2.
constexpr char kRecords[] =
    "SELECT CASE code WHEN 'unknown_artifact' THEN 'artifact' ELSE 'record' END, "
    "coalesce(n.text, k.text), (SELECT count(*) FROM record_row s "
    "WHERE s.id BETWEEN ?1 AND ?2 AND s.kind_id = r.kind_id AND s.name_id IS r.name_id), min(r.id) "
    "FROM import_log i JOIN record_row r ON r.id = i.record_id "
    "LEFT JOIN text_row k ON k.id = r.kind_id LEFT JOIN text_row n ON n.id = r.name_id "
    "WHERE code IN ('unknown_artifact', 'unknown_record_kind') AND i.record_id BETWEEN ?1 AND ?2 "
    "GROUP BY r.kind_id, r.name_id";
constexpr char kPhases[] =
    "SELECT 'phase', t.text, count(*), min(e.record_id) "
    "FROM chromium_event_row e JOIN text_row t ON t.id = e.name_id "
    "WHERE e.record_id BETWEEN ?1 AND ?2 GROUP BY e.name_id";
constexpr char kMetrics[] =
    "SELECT 'metric', j.key, count(*), min(m.record_id) "
    "FROM compilation_metric m JOIN json_each(m.metrics) j "
    "WHERE m.record_id BETWEEN ?1 AND ?2 GROUP BY j.key";
// Stored once for all runs: of one run, those of the keys that its records look up.
constexpr char kComponents[] =
    "SELECT 'component', t.text, count(*), NULL "
    "FROM component_row c JOIN text_row t ON t.id = c.name_id "
    "WHERE ?1 = 0 OR c.id IN (SELECT l.component_id "
    "FROM cache_event_row e JOIN cache_key_set_row s ON s.key_id = e.key_id "
    "JOIN component_run_row u ON u.set_id = s.component_set_id "
    "JOIN component_list_row l ON l.list_id = u.list_id AND l.ordinal >= u.list_ordinal "
    "AND l.ordinal < u.list_ordinal + u.length WHERE e.record_id BETWEEN ?1 AND ?2) "
    "GROUP BY c.name_id";

// inductor_config[max_fusion_size] → inductor_config
std::string_view WithoutMember(std::string_view component) {
  return component.substr(0, component.find('['));
}

struct Found {
  std::int64_t count = 0;
  std::int64_t first_record_id = 0;
};
using FoundNames = std::map<std::pair<std::string, std::string>, Found>;

struct RecordRange {
  std::int64_t first = 0, last = INT64_MAX;  // all runs
};

Result<void> Collect(Database& database, const char* query, const RecordRange& range,
                     std::optional<PytorchNameKind> kind, FoundNames& found) {
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(query));
  rows.Bind(1, range.first);
  rows.Bind(2, range.last);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    std::string_view name = rows.Text(1);
    if (kind == PytorchNameKind::kComponent) name = WithoutMember(name);
    if (kind && FindKnownName(*kind, name) != nullptr) continue;
    Found& one = found[{std::string(rows.Text(0)), std::string(name)}];
    one.count += rows.Int(2);
    if (one.first_record_id == 0) one.first_record_id = rows.Int(3);
  }
}

}  // namespace

Result<std::vector<UnknownName>> FindUnknownNames(Database& database,
                                                  std::optional<std::int64_t> run_id) {
  RecordRange range;
  if (run_id) {
    ASSIGN_OR_RETURN(Statement ends,
                     database.Prepare("SELECT min(first_record_id), max(last_record_id) "
                                      "FROM log_file WHERE run_id = ?"));
    ends.Bind(1, *run_id);
    ASSIGN_OR_RETURN(const bool has_row, ends.Step());
    if (has_row) range = {ends.Int(0), ends.Int(1)};
  }
  FoundNames found;
  RETURN_IF_ERROR(Collect(database, kRecords, range, std::nullopt, found));
  RETURN_IF_ERROR(Collect(database, kPhases, range, PytorchNameKind::kPhase, found));
  RETURN_IF_ERROR(Collect(database, kMetrics, range, PytorchNameKind::kMetric, found));
  RETURN_IF_ERROR(Collect(database, kComponents, range, PytorchNameKind::kComponent, found));
  ASSIGN_OR_RETURN(Statement place,
                   database.Prepare("SELECT f.path, r.line, p.torch_version "
                                    "FROM record_row r JOIN process p ON p.id = r.process_id "
                                    "JOIN log_file f ON f.id = p.log_file_id WHERE r.id = ?"));
  std::vector<UnknownName> names;
  for (const auto& [key, one] : found) {
    UnknownName& name = names.emplace_back();
    name.kind = key.first;
    name.name = key.second;
    name.count = one.count;
    place.Bind(1, one.first_record_id);
    ASSIGN_OR_RETURN(const bool has_row, place.Step());
    if (has_row) {
      name.path = place.Text(0);
      name.line = place.Int(1);
      name.torch_version = place.Text(2);
      place.Reset();
    }
  }
  return names;
}

}  // namespace tlparse
