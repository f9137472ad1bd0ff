// A span, and the OTLP request that carries spans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace libtrace::otel {

struct SpanId {
  std::string trace;  // 32 hexadecimal digits
  std::string span;   // 16
};

struct Span {
  SpanId id;
  std::string parent_span;  // "" = none
  std::string name;
  int64_t start_ns = 0, end_ns = 0;  // since the epoch
  std::vector<std::pair<std::string, std::string>> attributes;
  std::optional<std::string> error;
  std::optional<SpanId> link;
};

// ExportTraceServiceRequest as JSON (opentelemetry-proto, "JSON Protobuf Encoding": ids in
// hexadecimal, 64-bit numbers as text, enumerations as numbers).
std::string TraceRequest(std::string_view service_name, const std::vector<Span>& spans);

}  // namespace libtrace::otel
