#include "cli/cost_output.h"
#include "cli/rank_output.h"
#include "cli/shares.h"

namespace tlparse {

TimeName NameOf(CostTime time) {
  switch (time) {
    case CostTime::kKernels:
      break;
    case CostTime::kCallsOnCpu:
      return {"graph_calls_on_cpu", "CPU time"};
    case CostTime::kOpsOnCpu:
      return {"ops_on_cpu", "CPU time"};
    case CostTime::kOpsOnDevice:
      return {"ops_on_device", "kernel time"};
    case CostTime::kModulesOnCpu:
      return {"modules_on_cpu", "CPU time"};
  }
  return {"kernels", "kernel time"};
}

namespace {

void WriteProfile(JsonWriter& json, const CostProfile& profile) {
  json.BeginObject().Key("path").String(profile.path);
  json.Key("rank").OptionalInt(profile.rank).Key("launch").OptionalInt(profile.launch);
  json.Key("steps").Int(profile.steps);
  json.Key("start_us").Real(static_cast<double>(profile.start_ns) / 1e3);
  json.Key("window_us").Real(profile.window_us).Key("compiled_us").Real(profile.compiled_us);
  json.Key("unmarked_us").Real(profile.unmarked_us);
  json.Key("outside_us").Real(profile.outside_us);
  json.Key("compile_us").OptionalReal(profile.compile_us);
  json.Key("kernel_us").OptionalReal(profile.kernel_us);
  const auto if_devices = [&](double us) {
    return profile.devices.empty() ? std::nullopt : std::optional(us);
  };
  json.Key("joined_kernel_us").Real(profile.joined_kernel_us);
  json.Key("device_in_calls_us").OptionalReal(if_devices(profile.device_in_calls_us));
  json.Key("device_outside_us").OptionalReal(if_devices(profile.device_outside_us));
  json.Key("device_unknown_us").OptionalReal(if_devices(profile.device_unknown_us));
  json.Key("device_replay_us").OptionalReal(if_devices(profile.device_replay_us));
  json.Key("wait_us").Real(profile.wait_us).Key("collective_us").Real(profile.collective_us);
  json.Key("problems").BeginArray();
  for (const std::string& problem : profile.problems) json.String(problem);
  json.EndArray().Key("devices").BeginArray();
  for (const CostProfile::Device& device : profile.devices) {
    json.BeginObject().Key("device").Int(device.device).Key("kernels").Int(device.kernels);
    json.Key("has_own_steps").Bool(device.has_own_steps).Key("window_us").Real(device.window_us);
    json.Key("busy_us").Real(device.busy_us).Key("idle_us").Real(device.idle_us).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteRow(JsonWriter& json, const CostRow& row) {
  const auto text = [&](std::string_view key, const std::string& value) {
    json.Key(key).OptionalString(NonEmpty(value));
  };
  json.BeginObject();
  text("name", row.name);
  text("label", row.label);
  text("region", row.region);
  json.Key("generation").OptionalInt(row.generation).Key("rank").OptionalInt(row.rank);
  json.Key("launch").OptionalInt(row.launch);
  text("key", row.key);
  text("direction", row.direction);
  text("file", row.file);
  json.Key("line").OptionalInt(row.line);
  text("function", row.function);
  json.Key("kernel_id").OptionalInt(row.kernel_id).Key("graph_id").OptionalInt(row.graph_id);
  json.Key("debug_handle").OptionalInt(row.debug_handle);
  text("lines", row.lines);
  text("grid", row.grid);
  json.Key("calls").Int(row.calls).Key("inclusive_us").Real(row.inclusive_us);
  json.Key("share_us").Real(row.share_us).Key("share").Real(row.share);
  json.Key("device_us").OptionalReal(row.device_us).Key("cpu_us").OptionalReal(row.cpu_us);
  json.Key("compile_us").OptionalReal(row.compile_us);
  json.Key("estimated_us").OptionalReal(row.estimated_us);
  text("join_note", row.join_note);
  json.EndObject();
}

}  // namespace

JsonWriter CostJson(const CostAnswer& answer, std::string_view by, std::size_t top) {
  JsonWriter json;
  json.BeginObject().Key("by").String(by).Key("time").String(NameOf(answer.time).name);
  json.Key("profiles").BeginArray();
  for (const CostProfile& profile : answer.profiles) WriteProfile(json, profile);
  json.EndArray();
  WriteShares(json, answer.rows, top, WriteRow);
  json.Key("notes").BeginArray();
  for (const std::string& note : answer.notes) json.String(note);
  json.EndArray().EndObject();
  return json;
}

}  // namespace tlparse
