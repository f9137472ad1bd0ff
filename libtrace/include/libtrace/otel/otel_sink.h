// A sink that makes OpenTelemetry spans of records and sends them to a collector, beside another sink
// that writes the log.
//
//   libtrace::Options options = libtrace::Options::FromEnvironment();
//   auto otel = libtrace::MakeOtelSink(libtrace::MakeFileSink({.directory = "/var/log/trace"}),
//                                      {.host = "127.0.0.1", .service_name = "ranker"});
//   options.sink = otel;
//   libtrace::Start(options);
//
// | span                  | made of                               | begin and end                   |
// |---|---|---|
// | compile <function>    | compilation_metrics                   | start_time_us, end_time_us      |
// | cache lookup <layer>  | <layer>_cache_hit, _miss, _bypass     | cache_event_time; waited_ns before it |
// | model load <model>    | libtrace_model_load                   | the record's time; duration_ns before it |
// | graph call <label>    | libtrace_graph_execution              | time_us; duration_ns before it  |
//
// The parent of a span is the compile in which its record was emitted, else the `traceparent` of the
// thread (libtrace/traceparent.h); without either it begins a trace. A graph call has a link to the
// compile that it runs. Calls are recorded by GraphExecutionOrder with per_execution.
//
// Protocol: OTLP 1.x over HTTP/1.1 as JSON (POST /v1/traces), without TLS: meant for a collector or
// agent on the host. A thread of the sink sends; nothing that is emitted waits for the network. What
// the collector does not take is tried again until there is no room, then counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "libtrace/export.h"
#include "libtrace/sink.h"

namespace libtrace LIBTRACE_EXPORT {

struct OtelOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 4318;
  std::string path = "/v1/traces";
  std::string service_name = "unknown_service";
  std::chrono::milliseconds interval{1000};  // between two requests
  std::chrono::milliseconds timeout{3000};   // of a request
  uint32_t max_spans = 4096;                 // that wait; more are dropped and counted
};

struct OtelStats {
  uint64_t sent_count = 0;      // spans that the collector took
  uint64_t dropped_count = 0;   // no room, or still waiting when the sink was closed
  uint64_t rejected_count = 0;  // the collector refused them (4xx, partialSuccess)
  uint64_t failed_request_count = 0;
};

// Thread-safe where Sink is, and stats() always.
class OtelSink : public TraceSink {
 public:
  virtual OtelStats stats() const = 0;
  // Sends what waits. False: not all was taken in that time.
  virtual bool Send(std::chrono::milliseconds timeout) = 0;
};

// `inner` gets every record unchanged; null: only spans are made. A forked child sends spans of its
// own. Stop() sends what waits, for `timeout` at most.
std::shared_ptr<OtelSink> MakeOtelSink(std::shared_ptr<TraceSink> inner, OtelOptions options);

}  // namespace LIBTRACE_EXPORT
