#include "cli/compile_output.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

void WritePlace(JsonWriter& json, const CompilePlace& place) {
  json.BeginObject().Key("file").OptionalString(NonEmpty(place.file)).Key("line");
  json.OptionalInt(place.line > 0 ? std::optional(place.line) : std::nullopt);
  json.Key("function").OptionalString(NonEmpty(place.function));
  json.Key("code").OptionalString(NonEmpty(place.code)).EndObject();
}

void WriteLines(JsonWriter& json, const std::vector<TracedLine>& lines) {
  json.BeginArray();
  for (const TracedLine& one : lines) {
    json.BeginObject().Key("file").String(one.file).Key("line").Int(one.line);
    json.Key("code").OptionalString(NonEmpty(one.code)).EndObject();
  }
  json.EndArray();
}

void WriteOthers(JsonWriter& json, const std::vector<OfOtherRanks>& others) {
  json.BeginArray();
  for (const OfOtherRanks& one : others)
    json.BeginObject().Key("ranks").String(one.ranks).Key("text").String(one.text).EndObject();
  json.EndArray();
}

void WriteTraced(JsonWriter& json, const CompileAnswer& answer) {
  json.Key("traced").BeginObject().Key("has_graph").Bool(answer.traced.has_graph).Key("lines");
  WriteLines(json, answer.traced.lines);
  json.EndObject().Key("other_lines").BeginArray();
  for (const LinesOfOtherRanks& one : answer.other_lines) {
    json.BeginObject().Key("ranks").String(one.ranks);
    json.Key("has_graph").Bool(one.traced.has_graph).Key("only_here");
    WriteLines(json, one.only_here);
    json.Key("only_there");
    WriteLines(json, one.only_there);
    json.Key("lines");
    WriteLines(json, one.traced.lines);
    json.EndObject();
  }
  json.EndArray();
}

void WriteInputs(JsonWriter& json, const CompileAnswer& answer) {
  json.Key("inputs").BeginArray();
  for (const InputTensor& one : answer.inputs) {
    json.BeginObject().Key("name").String(one.name).Key("dtype").String(one.dtype);
    json.Key("size").String(one.size).Key("is_parameter").Bool(one.is_parameter).EndObject();
  }
  json.EndArray().Key("input_changes");
  WriteOthers(json, answer.input_changes);
  json.Key("failed_guards").BeginArray();
  for (const FailedEntry& one : answer.failed_guards) {
    json.BeginObject().Key("after").OptionalString(NonEmpty(one.label));
    json.Key("guard").String(one.reason.text).EndObject();
  }
  json.EndArray();
}

void WriteTimesAndCaches(JsonWriter& json, const CompileAnswer& answer) {
  json.Key("phases_us").BeginObject();
  for (const auto& [phase, us] : answer.phases) json.Key(phase).Int(us);
  json.EndObject().Key("least_other_s").OptionalReal(answer.least_other_s);
  json.Key("most_other_s").OptionalReal(answer.most_other_s).Key("lookups").BeginArray();
  for (const CompileLookup& one : answer.lookups) {
    json.BeginObject().Key("layer").String(one.layer).Key("state").String(one.state);
    json.Key("direction").OptionalString(NonEmpty(one.direction));
    json.Key("key").OptionalString(NonEmpty(one.key));
    json.Key("bypass_reason").OptionalString(NonEmpty(one.bypass_reason));
    json.Key("guard").OptionalString(NonEmpty(one.guard));
    json.Key("remote_error").OptionalString(NonEmpty(one.remote_error)).EndObject();
  }
  json.EndArray().Key("cache_causes");
  WriteOthers(json, answer.cache_causes);
  json.Key("missed_because");
  WriteStrings(json, answer.missed_because);
}

void WriteOptions(JsonWriter& json, const CompileAnswer& answer) {
  json.Key("torch_version").OptionalString(NonEmpty(answer.torch_version));
  json.Key("python_version").OptionalString(NonEmpty(answer.python_version));
  json.Key("option_changes");
  WriteOthers(json, answer.option_changes);
  json.Key("options_unknown_of").OptionalString(NonEmpty(answer.options_unknown_of));
  json.Key("options").BeginObject();
  for (const auto& [name, value] : answer.options) json.Key(name).String(value);
  json.EndObject();
}

void WriteEnd(JsonWriter& json, const CompileAnswer& answer) {
  json.Key("statuses");
  WriteOthers(json, answer.statuses);
  json.Key("without").OptionalString(NonEmpty(answer.without));
  json.Key("graph_breaks").BeginArray();
  for (const CompilePlace& one : answer.graph_breaks) {
    json.BeginObject().Key("cause").String(one.code);
    json.Key("file").OptionalString(NonEmpty(one.file)).Key("line");
    json.OptionalInt(one.line > 0 ? std::optional(one.line) : std::nullopt).EndObject();
  }
  json.EndArray().Key("exceptions").BeginArray();
  for (const CompileException& one : answer.exceptions) {
    json.BeginObject().Key("is_restart").Bool(one.is_restart);
    json.Key("type").OptionalString(NonEmpty(one.type));
    json.Key("message").OptionalString(NonEmpty(one.message)).Key("place");
    WritePlace(json, one.place);
    json.EndObject();
  }
  json.EndArray().Key("next");
  if (answer.next_label.empty()) {
    json.Null();
  } else {
    json.BeginObject().Key("compile").String(answer.next_label);
    json.Key("function").OptionalString(NonEmpty(answer.next_function));
    json.Key("status").String(answer.next_status);
    json.Key("start_us").OptionalInt(answer.next_start_us).EndObject();
  }
  json.Key("last_record_us").OptionalInt(answer.last_record_us);
}

}  // namespace

JsonWriter CompileJson(const CompileAnswer& answer) {
  JsonWriter json;
  json.BeginObject().Key("run").String(answer.run).Key("launch").Int(answer.launch);
  json.Key("launch_count").Int(answer.launch_count).Key("compile").String(answer.label);
  json.Key("rank").OptionalInt(answer.rank).Key("who").String(answer.who);
  json.Key("role").OptionalString(NonEmpty(answer.role)).Key("status").String(Name(answer.status));
  json.Key("function");
  WritePlace(json, answer.function);
  json.Key("start_us").OptionalInt(answer.start_us).Key("pid").Int(answer.pid);
  json.Key("process_id").Int(answer.process_id).Key("compile_id").Int(answer.id);
  json.Key("log").String(answer.log).Key("log_line");
  json.OptionalInt(answer.log_line > 0 ? std::optional(answer.log_line) : std::nullopt);
  json.Key("callers").BeginArray();
  for (const CompilePlace& one : answer.callers) WritePlace(json, one);
  json.EndArray();
  WriteTraced(json, answer);
  WriteInputs(json, answer);
  WriteTimesAndCaches(json, answer);
  WriteEnd(json, answer);
  WriteOptions(json, answer);
  json.EndObject();
  return json;
}

}  // namespace tlparse
