// collectives_parity.json of one participant.
#include "queries/report/tree/collectives_parity.h"

#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "base/json_writer.h"
#include "report/tree/json_format.h"
#include "report/tree/rank_aggregates.h"
#include "store/database.h"

namespace tlparse {
namespace {

// The family of a collective: all_gather_into_tensor and all_gather_into_tensor_coalesced count as
// one. Empty for what is no collective.
std::string_view Family(std::string_view op) {
  static constexpr std::array<std::string_view, 6> kFamilies = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "reduce"};
  for (const std::string_view family : kFamilies) {
    if (op.find(family) != std::string_view::npos) return family;
  }
  return {};
}

struct Counts {
  std::map<std::string_view, std::int64_t> by_family;
  std::int64_t total = 0;
  std::int64_t waits = 0;
};

// What one compile directory planned and generated.
struct Graphs {
  std::string_view key;
  Counts schedule;
  Counts code;
};

Result<void> Count(Database& database, std::int64_t record_id, CollectiveSource source,
                   const std::set<std::int64_t>* only_graphs, Counts& counts) {
  FOR_EACH_ROW(
      const CollectiveOfRecord& row,
      KeptQuery<CollectiveOfRecord>(database, {.record_id = record_id, .source = source})) {
    if (only_graphs != nullptr && !only_graphs->contains(row.graph_id.value_or(0))) continue;
    if (row.is_wait) {
      ++counts.waits;
      continue;
    }
    const std::string_view family = Family(row.op);
    if (family.empty()) continue;
    ++counts.by_family[family];
    ++counts.total;
  }
  return {};
}

std::int64_t Offset(const Counts& schedule, const Counts& code) {
  std::map<std::string_view, std::int64_t> difference = schedule.by_family;
  for (const auto& [family, count] : code.by_family) difference[family] -= count;
  std::int64_t offset = 0;
  for (const auto& [family, count] : difference) offset += std::abs(count);
  return offset;
}

}  // namespace

Result<void> WriteCollectivesParity(const ReportContext& context, const TreePlan& plan) {
  if (context.participant.directory.empty()) return {};
  // A graph from the cache has code but no schedule: only graphs with both are compared.
  std::map<std::uint32_t, Graphs> by_directory;
  std::set<std::int64_t> scheduled_graphs;
  for (const PlannedFile& file : plan.files) {
    if (!file.name.starts_with("inductor_collective_schedule_") || file.form != FileForm::kJson) {
      continue;
    }
    ASSIGN_OR_RETURN(const FirstRow<GraphOfSchedule> use,
                     First(KeptQuery<GraphOfSchedule>(
                         context.database,
                         {.record_id = file.record_id, .schedule = CollectiveSource::kSchedule})));
    if (!use) continue;
    scheduled_graphs.insert(use->graph_id.value_or(0));
    Graphs& graphs = by_directory[file.directory];
    graphs.key = plan.keys[file.key].key;
    RETURN_IF_ERROR(Count(context.database, file.record_id, CollectiveSource::kSchedule, nullptr,
                          graphs.schedule));
  }
  for (const PlannedFile& file : plan.files) {
    if (!file.name.starts_with("inductor_output_code") || file.number < 0) continue;
    const auto graphs = by_directory.find(file.directory);
    if (graphs == by_directory.end()) continue;
    RETURN_IF_ERROR(Count(context.database, file.record_id, CollectiveSource::kCode,
                          &scheduled_graphs, graphs->second.code));
  }
  FileWriter out;
  RETURN_IF_ERROR(out.Open(context.directory, "collectives_parity.json"));
  JsonWriter json;
  json.BeginObject()
      .Key("description")
      .String(
          "Per compile directory: difference between the collectives that were scheduled and those "
          "in the generated code, and collectives without a wait");
  json.Key("graphs").BeginArray();
  for (const auto& [directory, graphs] : by_directory) {
    const std::int64_t offset = Offset(graphs.schedule, graphs.code);
    const std::int64_t missing_waits =
        std::max<std::int64_t>(0, graphs.code.total - graphs.code.waits);
    if (offset == 0 && missing_waits == 0) continue;
    json.BeginObject().Key("graph").String(plan.directories[directory]);
    json.Key("compile_id").String(graphs.key);
    json.Key("offset").Int(offset).Key("missing_waits").Int(missing_waits).EndObject();
  }
  json.EndArray().EndObject();
  AppendJson(json.text(), JsonLayout::kPretty, out);
  return out.Close();
}

}  // namespace tlparse
