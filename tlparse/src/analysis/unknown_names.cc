#include "analysis/unknown_names.h"

#include <map>

#include "log/pytorch_names.h"

namespace tlparse {
namespace {

// Each query: kind, name, number of records, the first of them.
constexpr char kRecords[] =
    "SELECT CASE code WHEN 'unknown_artifact' THEN 'artifact' ELSE 'record' END, coalesce(n.text, "
    "k.text), (SELECT count(*) FROM record_row s JOIN process q ON q.id = s.process_id  JOIN "
    "log_file g ON g.id = q.log_file_id WHERE s.kind_id = r.kind_id AND s.name_id IS r.name_id  "
    "AND (?1 IS NULL OR g.run_id = ?1)), min(r.id) FROM import_log i JOIN record_row r ON r.id = "
    "i.record_id LEFT JOIN text_row k ON k.id = r.kind_id LEFT JOIN text_row n ON n.id = r.name_id "
    "WHERE code IN ('unknown_artifact', 'unknown_record_kind') AND (?1 IS NULL OR i.run_id = ?1) "
    "GROUP BY r.kind_id, r.name_id";
constexpr char kPhases[] =
    "SELECT 'phase', t.text, count(*), min(e.record_id) FROM chromium_event_row e JOIN record_row "
    "r ON r.id = e.record_id JOIN process p ON p.id = r.process_id JOIN log_file f ON f.id = "
    "p.log_file_id JOIN text_row t ON t.id = e.name_id WHERE ?1 IS NULL OR f.run_id = ?1 GROUP BY "
    "e.name_id";
constexpr char kMetrics[] =
    "SELECT 'metric', j.key, count(*), min(m.record_id) FROM compilation_metric m JOIN record_row "
    "r ON r.id = m.record_id JOIN process p ON p.id = r.process_id JOIN log_file f ON f.id = "
    "p.log_file_id JOIN json_each(m.metrics) j WHERE ?1 IS NULL OR f.run_id = ?1 GROUP BY j.key";
constexpr char kComponents[] =
    "SELECT 'component', t.text, count(*), NULL FROM component_row c JOIN text_row t ON t.id = "
    "c.name_id WHERE ?1 IS ?1 GROUP BY c.name_id";

// inductor_config[max_fusion_size] → inductor_config
std::string_view WithoutMember(std::string_view component) {
  return component.substr(0, component.find('['));
}

struct Found {
  std::int64_t count = 0;
  std::int64_t first_record_id = 0;
};
using FoundNames = std::map<std::pair<std::string, std::string>, Found>;

Result<void> Collect(Database& database, const char* query, std::optional<std::int64_t> run_id,
                     std::optional<PytorchNameKind> kind, FoundNames& found) {
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(query));
  rows.Bind(1, run_id);
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
  FoundNames found;
  RETURN_IF_ERROR(Collect(database, kRecords, run_id, std::nullopt, found));
  RETURN_IF_ERROR(Collect(database, kPhases, run_id, PytorchNameKind::kPhase, found));
  RETURN_IF_ERROR(Collect(database, kMetrics, run_id, PytorchNameKind::kMetric, found));
  RETURN_IF_ERROR(Collect(database, kComponents, run_id, PytorchNameKind::kComponent, found));
  ASSIGN_OR_RETURN(
      Statement place,
      database.Prepare(
          "SELECT f.path, r.line, p.torch_version FROM record_row r JOIN process p ON "
          "p.id = r.process_id JOIN log_file f ON f.id = p.log_file_id WHERE r.id = ?"));
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
