#include "report/tree/rank_aggregates.h"

#include <simdjson.h>

#include <cmath>
#include <map>

#include "base/json_count.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "log/inductor_texts.h"
#include "queries/report/tree/rank_aggregates.h"
#include "report/tree/entry_file.h"
#include "report/tree/file_name.h"
#include "report/tree/html.h"
#include "report/tree/json_format.h"
#include "report/tree/record_scan.h"
#include "store/database.h"

namespace tlparse {
namespace {

// One op of an estimate, as the log gives it.
struct Op {
  std::string name;
  std::string estimate;  // JSON number
};

std::vector<Op> ReadOps(std::string_view payload, simdjson::dom::parser& parser) {
  std::vector<Op> ops;
  simdjson::dom::array list;
  if (HasTooManyJsonValues(payload)) return ops;  // as in the database; import_log has a row
  if (parser.parse(payload.data(), payload.size()).at_key("ops").get(list) != simdjson::SUCCESS) {
    return ops;
  }
  for (const simdjson::dom::element element : list) {
    std::string_view name;
    simdjson::dom::element estimate;
    if (element.at_key("name").get(name) != simdjson::SUCCESS) continue;
    const bool has_number =
        element.at_key(inductor::kEstimatedRuntime).get(estimate) == simdjson::SUCCESS &&
        estimate.is_number();
    ops.push_back(
        Op{std::string(name), has_number ? std::string(simdjson::minify(estimate)) : "null"});
  }
  return ops;
}

// The begin of an entry of a graph on a rank.
JsonWriter EntryOf(const Participant& participant, const ArtifactOfGraph& artifact) {
  JsonWriter entry;
  entry.BeginObject().Key("rank").OptionalInt(participant.rank);
  entry.Key("graph").String(artifact.graph);
  return entry;
}

Result<void> AddEstimate(const Participant& participant, const ArtifactOfGraph& artifact,
                         PayloadReader& payloads, simdjson::dom::parser& parser, EntryFile& file) {
  ASSIGN_OR_RETURN(const std::string_view payload, payloads.Content(artifact.payload_id));
  const std::vector<Op> ops = ReadOps(payload, parser);
  if (ops.empty()) return {};
  JsonWriter entry = EntryOf(participant, artifact);
  entry.Key("ops").BeginArray();
  for (const Op& op : ops) {
    entry.BeginObject().Key("name").String(op.name);
    entry.Key(inductor::kEstimatedRuntime).Raw(op.estimate).EndObject();
  }
  entry.EndArray().EndObject();
  return file.Add(entry.text());
}

// The ops of one estimate one after the other, on one track. The durations are the database's, where
// the unit that the log uses is resolved.
Result<void> AddRuntimeEvents(Database& database, std::int64_t pid, std::int64_t tid,
                              const Participant& participant, const ArtifactOfGraph& artifact,
                              EntryFile& file) {
  std::int64_t start_us = 0;
  FOR_EACH_ROW(const EstimatedOp& op,
               KeptQuery<EstimatedOp>(database, {.record_id = artifact.record_id})) {
    const double estimated_ns =
        std::isfinite(op.estimated_ns) ? std::max(op.estimated_ns, 0.0) : 0.0;
    const auto duration_us =
        static_cast<std::int64_t>(std::max(1.0, std::ceil(std::min(estimated_ns, 1e18) / 1000)));
    JsonWriter event;
    event.BeginObject().Key("name").String(op.name).Key("ph").String("X");
    event.Key("ts").Int(start_us).Key("dur").Int(duration_us).Key("pid").Int(pid);
    event.Key("tid").Int(tid).Key("cat").String("runtime").Key("args").BeginObject();
    event.Key("graph").String(artifact.graph).Key("rank").OptionalInt(participant.rank);
    event.Key("runtime_ns").Int(static_cast<std::int64_t>(std::min(estimated_ns, 1e18)));
    event.EndObject().EndObject();
    RETURN_IF_ERROR(file.Add(event.text()));
    start_us += duration_us;
  }
  return {};
}

// A metadata event up to the value of its argument.
JsonWriter Metadata(std::string_view name, std::int64_t pid, std::optional<std::int64_t> tid,
                    std::string_view argument) {
  JsonWriter event;
  event.BeginObject().Key("name").String(name).Key("ph").String("M").Key("pid").Int(pid);
  if (tid) event.Key("tid").Int(*tid);
  event.Key("args").BeginObject().Key(argument);
  return event;
}

// Name and position of a process (tid: nullopt) or a thread.
Result<void> AddTrack(std::int64_t pid, std::optional<std::int64_t> tid, std::string_view name,
                      EntryFile& file) {
  const std::string kind = tid ? "thread" : "process";
  JsonWriter named = Metadata(kind + "_name", pid, tid, "name");
  RETURN_IF_ERROR(file.Add(named.String(name).EndObject().EndObject().text()));
  JsonWriter sorted = Metadata(kind + "_sort_index", pid, tid, "sort_index");
  return file.Add(sorted.Int(tid.value_or(pid)).EndObject().EndObject().text());
}

}  // namespace

AggregateFacts FactsOf(const ReportContext& context, const TreePlan& plan) {
  AggregateFacts facts;
  for (const PlannedKey& key : plan.keys) {
    facts.files += static_cast<std::int64_t>(key.files.size());
    facts.compiles += key.files.empty() || key.key == "[-/-]" ? 0 : 1;
  }
  for (const PlannedFile& file : plan.files) {
    if (file.form != FileForm::kJson || file.payload_id == 0) continue;
    const ArtifactOfGraph artifact{file.record_id, file.payload_id,
                                   plan.directories[file.directory]};
    if (file.name.starts_with("inductor_collective_schedule_")) facts.schedules.push_back(artifact);
    if (file.name.starts_with("inductor_runtime_and_tensor_meta_")) {
      facts.estimates.push_back(artifact);
    }
  }
  facts.failures =
      static_cast<std::int64_t>(FailuresOf(context.participant, context.failures).size());
  return facts;
}

Result<void> WriteCollectiveSchedules(Database& database, const Directory& root,
                                      const std::vector<Participant>& participants,
                                      const std::vector<AggregateFacts>& facts) {
  ASSIGN_OR_RETURN(PayloadReader payloads, PayloadReader::Open(database));
  EntryFile file(root, "collective_schedules.json");
  std::string ops;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    for (const ArtifactOfGraph& schedule : facts[i].schedules) {
      ASSIGN_OR_RETURN(const std::string_view payload, payloads.Content(schedule.payload_id));
      ops.clear();
      const bool is_list = AppendJson(SanitizeUtf8(payload), JsonLayout::kCompact, ops) &&
                           ops.front() == '[' && ops != "[]";
      if (!is_list) continue;
      JsonWriter entry = EntryOf(participants[i], schedule);
      RETURN_IF_ERROR(file.Add(entry.Key("ops").Raw(ops).EndObject().text()));
    }
  }
  return file.Close();
}

Result<void> WriteRuntimeEstimates(Database& database, const Directory& root,
                                   const std::vector<Participant>& participants,
                                   const std::vector<AggregateFacts>& facts) {
  ASSIGN_OR_RETURN(PayloadReader payloads, PayloadReader::Open(database));
  simdjson::dom::parser parser;
  EntryFile estimates(root, "runtime_estimations.json");
  EntryFile trace(root, "chromium_trace_with_runtime.json");
  for (std::size_t i = 0; i < participants.size(); ++i) {
    if (facts[i].estimates.empty()) continue;
    // A viewer needs a number for every participant; an unranked one gets one that no rank has.
    const std::int64_t pid =
        participants[i].rank.value_or(1'000'000 + static_cast<std::int64_t>(i));
    RETURN_IF_ERROR(AddTrack(pid, std::nullopt, participants[i].title, trace));
    std::int64_t tid = 0;
    for (const ArtifactOfGraph& artifact : facts[i].estimates) {
      RETURN_IF_ERROR(AddEstimate(participants[i], artifact, payloads, parser, estimates));
      RETURN_IF_ERROR(AddTrack(pid, ++tid, "graph " + artifact.graph, trace));
      RETURN_IF_ERROR(AddRuntimeEvents(database, pid, tid, participants[i], artifact, trace));
    }
  }
  RETURN_IF_ERROR(estimates.Close());
  return trace.Close();
}

}  // namespace tlparse
