#include "cli/memory_output.h"
#include "cli/rank_output.h"
#include "cli/shares.h"

namespace tlparse {
namespace {

void WriteText(JsonWriter& json, std::string_view key, const std::string& value) {
  json.Key(key).OptionalString(NonEmpty(value));
}

void WriteMembers(JsonWriter& json, const MemoryRow& row) {
  json.Key("size_bytes").Int(row.size_bytes);
  json.Key("allocations").Int(row.allocations).Key("share").Real(row.share);
  WriteText(json, "category", row.category);
  WriteText(json, "file", row.file);
  json.Key("line").OptionalInt(row.line);
  WriteText(json, "function", row.function);
  WriteText(json, "label", row.label);
  WriteText(json, "direction", row.direction);
  WriteText(json, "reason", row.reason);
  json.Key("frames");
  WriteStrings(json, row.frames);
}

void WriteMemoryRow(JsonWriter& json, const MemoryRow& row) {
  json.BeginObject();
  WriteMembers(json, row);
  json.EndObject();
}

void WriteFreed(JsonWriter& json, const std::optional<MemoryFreed>& freed) {
  json.Key("freed");
  if (!freed) {
    json.Null();
    return;
  }
  json.BeginObject().Key("size_bytes").Int(freed->size_bytes);
  json.Key("lower_peak_bytes").Int(freed->lower_peak_bytes);
  WriteShares(json, freed->rows, freed->rows.size(), WriteMemoryRow);
  json.EndObject();
}

void WriteSteps(JsonWriter& json, const MemoryDevice& device) {
  json.Key("steps").BeginArray();
  for (const MemoryStep& step : device.steps) {
    json.BeginObject().Key("step").Int(step.step).Key("end_us").Int(step.end_ns / 1000);
    json.Key("alive_bytes").Int(step.alive_bytes).EndObject();
  }
  json.EndArray().Key("growing_steps").Int(static_cast<std::int64_t>(device.growing_steps));
  json.Key("growth").BeginArray();
  for (const MemoryGrowth& growth : device.growth) {
    json.BeginObject();
    WriteMembers(json, growth.row);
    json.Key("alive_bytes").BeginArray();
    for (const BytesAlive& alive : growth.alive) json.Int(alive.size_bytes);
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void WriteSegments(JsonWriter& json, const std::optional<MemorySegments>& segments) {
  json.Key("segments");
  if (!segments) {
    json.Null();
    return;
  }
  json.BeginObject().Key("reserved_bytes").Int(segments->reserved_bytes);
  json.Key("requested_bytes").Int(segments->requested_bytes);
  json.Key("rounding_bytes").Int(segments->rounding_bytes);
  json.Key("free_bytes").Int(segments->free_bytes);
  json.Key("fragmented_bytes").Int(segments->fragmented_bytes);
  json.Key("largest_free_bytes").Int(segments->largest_free_bytes).EndObject();
}

void WriteFailed(JsonWriter& json, const std::optional<FailedAllocation>& failed) {
  json.Key("failed");
  if (!failed) {
    json.Null();
    return;
  }
  json.BeginObject().Key("size_bytes").Int(failed->size_bytes);
  json.Key("device_free_bytes").OptionalInt(failed->device_free_bytes);
  json.Key("time_us").OptionalInt(failed->time_us);
  WriteText(json, "file", failed->file);
  json.Key("line").OptionalInt(failed->line);
  WriteText(json, "function", failed->function);
  json.EndObject();
}

}  // namespace

JsonWriter MemoryJson(const MemoryAnswer& answer, std::string_view by, std::string_view at,
                      std::size_t top) {
  JsonWriter json;
  json.BeginObject().Key("by").String(by).Key("at").String(at).Key("devices").BeginArray();
  for (const MemoryDevice& device : answer.devices) {
    json.BeginObject().Key("path").String(device.path).Key("kind").String(device.kind);
    json.Key("source").String(device.source).Key("device").OptionalInt(device.device);
    json.Key("rank").OptionalInt(device.rank).Key("event_count").Int(device.event_count);
    json.Key("ordinal").Int(device.ordinal).Key("time_us").OptionalInt(device.time_us);
    json.Key("alive_bytes").Int(device.alive_bytes).Key("base_bytes").Int(device.base_bytes);
    json.Key("peak_bytes").Int(device.peak_bytes).Key("end_bytes").Int(device.end_bytes);
    json.Key("reserved_bytes").OptionalInt(device.reserved_bytes);
    json.Key("line_bytes").Int(device.line_bytes).Key("graph_bytes").Int(device.graph_bytes);
    json.Key("named_bytes").Int(device.named_bytes);
    WriteSegments(json, device.segments);
    WriteFailed(json, device.failed);
    WriteShares(json, device.rows, top, WriteMemoryRow);
    WriteFreed(json, device.freed);
    WriteSteps(json, device);
    json.EndObject();
  }
  json.EndArray().Key("notes").BeginArray();
  for (const std::string& note : answer.notes) json.String(note);
  json.EndArray().EndObject();
  return json;
}

}  // namespace tlparse
