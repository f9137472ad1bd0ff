#include "answers/import_log/unknown_names.h"

#include <map>

#include "log/pytorch_names.h"
#include "queries/answers/import_log/unknown_names.h"

namespace tlparse {
namespace {

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

// Adds the names that PyTorch's sources, as far as this program knows them, do not have.
template <typename Row>
Result<void> Collect(Database& database, const RecordRange& range, PytorchNameKind kind,
                     const char* kind_name, FoundNames& found) {
  FOR_EACH_ROW(const Row& row, Query<Row>(database, {.first = range.first, .last = range.last})) {
    const std::string_view name =
        kind == PytorchNameKind::kComponent ? WithoutMember(row.name) : row.name;
    if (FindKnownName(kind, name) != nullptr) continue;
    Found& one = found[{kind_name, std::string(name)}];
    one.count += row.count;
    if (one.first_record_id == 0) one.first_record_id = row.first_record_id;
  }
  return {};
}

Result<void> CollectRecords(Database& database, const RecordRange& range, FoundNames& found) {
  FOR_EACH_ROW(const UnknownRecordName& row,
               Query<UnknownRecordName>(database, {.first = range.first, .last = range.last})) {
    found[{std::string(row.kind), std::string(row.name)}] = {row.count, row.first_record_id};
  }
  return {};
}

}  // namespace

Result<std::vector<UnknownName>> FindUnknownNames(Database& database,
                                                  std::optional<std::int64_t> run_id) {
  RecordRange range;
  if (run_id) {
    ASSIGN_OR_RETURN(const FirstRow<RecordsOfRun> ends,
                     First(Query<RecordsOfRun>(database, {.run_id = *run_id})));
    if (ends) range = {ends->first, ends->last};
  }
  FoundNames found;
  RETURN_IF_ERROR(CollectRecords(database, range, found));
  RETURN_IF_ERROR(Collect<PhaseName>(database, range, PytorchNameKind::kPhase, "phase", found));
  RETURN_IF_ERROR(Collect<MetricName>(database, range, PytorchNameKind::kMetric, "metric", found));
  RETURN_IF_ERROR(
      Collect<ComponentName>(database, range, PytorchNameKind::kComponent, "component", found));
  ASSIGN_OR_RETURN(PreparedQuery<PlaceOfRecord> places,
                   PreparedQuery<PlaceOfRecord>::Make(database));
  std::vector<UnknownName> names;
  for (const auto& [key, one] : found) {
    UnknownName& name = names.emplace_back();
    name.kind = key.first;
    name.name = key.second;
    name.count = one.count;
    ASSIGN_OR_RETURN(const FirstRow<PlaceOfRecord> place,
                     First(places.Run({.id = one.first_record_id})));
    if (place) {
      name.path = place->path;
      name.line = place->line;
      name.torch_version = place->torch_version;
    }
  }
  return names;
}

}  // namespace tlparse
