#include "otel/span.h"

#include <unistd.h>

#include "libtrace/json.h"

namespace libtrace::otel {
namespace {

constexpr int kInternalSpan = 1;  // SPAN_KIND_INTERNAL
constexpr int kErrorStatus = 2;   // STATUS_CODE_ERROR

void WriteAttribute(JsonWriter& json, std::string_view key, std::string_view value) {
  json.BeginObject().Field("key", key).Key("value").BeginObject();
  json.Field("stringValue", value).EndObject().EndObject();
}

void WriteSpan(JsonWriter& json, const Span& span) {
  json.BeginObject().Field("traceId", span.id.trace).Field("spanId", span.id.span);
  if (!span.parent_span.empty()) json.Field("parentSpanId", span.parent_span);
  json.Field("name", span.name).Field("kind", kInternalSpan);
  json.Field("startTimeUnixNano", std::to_string(span.start_ns));
  json.Field("endTimeUnixNano", std::to_string(span.end_ns));
  json.Key("attributes").BeginArray();
  for (const auto& [key, value] : span.attributes) WriteAttribute(json, key, value);
  json.EndArray();
  if (span.link) {
    json.Key("links").BeginArray().BeginObject().Field("traceId", span.link->trace);
    json.Field("spanId", span.link->span).EndObject().EndArray();
  }
  if (span.error) {
    json.Key("status").BeginObject().Field("code", kErrorStatus);
    json.Field("message", *span.error).EndObject();
  }
  json.EndObject();
}

}  // namespace

std::string TraceRequest(std::string_view service_name, const std::vector<Span>& spans) {
  std::string text;
  JsonWriter json(text, JsonStyle::kOneLine);
  json.BeginObject().Key("resourceSpans").BeginArray().BeginObject();
  json.Key("resource").BeginObject().Key("attributes").BeginArray();
  WriteAttribute(json, "service.name", service_name);
  json.BeginObject().Field("key", "process.pid").Key("value").BeginObject();
  json.Field("intValue", std::to_string(getpid())).EndObject().EndObject();
  json.EndArray().EndObject();
  json.Key("scopeSpans").BeginArray().BeginObject();
  json.Key("scope").BeginObject().Field("name", "libtrace").EndObject();
  json.Key("spans").BeginArray();
  for (const Span& span : spans) WriteSpan(json, span);
  json.EndArray().EndObject().EndArray().EndObject().EndArray().EndObject();
  json.Finish();
  return text;
}

}  // namespace libtrace::otel
