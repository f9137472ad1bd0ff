// Emits what a server would for a few requests, into a log and as spans. test_otel.py reads both.
//
// usage: libtrace_otel_program DIRECTORY PORT [TIMEOUT_MS [MAX_SPANS]]      prints counters
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/compile.h"
#include "libtrace/otel/otel_sink.h"
#include "libtrace/prometheus.h"
#include "libtrace/trace.h"
#include "libtrace/traceparent.h"

namespace {

using namespace libtrace;

const std::string kFirst = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const std::string kSecond = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-01";
const std::string kUnsampled = "00-0af7651916cd43dd8448eb211c80319e-b7ad6b7169203333-00";

CacheInfo Lookup(const char* key, std::optional<int64_t> waited_ns = {}) {
  CacheInfo info;
  info.key = key;
  info.waited_ns = waited_ns;
  return info;
}

CompileId Request(Frame& frame, bool fails) {
  Compile compile(frame, {.function = fails ? "broken" : "net"});
  EmitCacheEvent("acme_model", CacheState::kMiss, Lookup("k1", 2000));
  if (fails) {
    compile.Fail("acme::Error", "no \"kernel\"\n");
  } else {
    ModelLoad load;
    load.model = "net";
    load.kind = "acme";
    load.state = "compiled";
    load.duration_ns = 5'000'000;
    EmitModelLoad(load);
  }
  return compile.id();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  OtelOptions otel;
  otel.port = static_cast<uint16_t>(std::atoi(argv[2]));
  otel.service_name = "ranker";
  otel.interval = std::chrono::milliseconds(20);
  // A busy machine may let a receiver wait for seconds.
  otel.timeout = std::chrono::milliseconds(argc > 3 ? std::atoi(argv[3]) : 20'000);
  if (argc > 4) otel.max_spans = static_cast<uint32_t>(std::atoi(argv[4]));
  const auto sink = MakeOtelSink(MakeFileSink({.directory = argv[1]}), otel);
  Options options;
  options.sink = sink;
  if (!Start(options)) return 1;
  Frame frame;
  GraphExecutionOrder order(GraphExecutionOrder::Options{.per_execution = true});
  CompileId compiled;
  {
    const TraceparentScope request(kFirst);
    compiled = Request(frame, false);
    std::thread([onward = std::string(CurrentTraceparent())] {
      const TraceparentScope here(onward);
      EmitCacheEvent("acme_remote", CacheState::kHit, Lookup("k2"));
    }).join();
  }
  {
    const TraceparentScope request(kSecond);
    order.Executed(compiled, "net", 1'000'000);
  }
  {
    const TraceparentScope request(kUnsampled);
    Request(frame, false);
    order.Executed(compiled, "unsampled", 1'000'000);
  }
  {
    const TraceparentScope request("not a traceparent");
    Request(frame, true);
  }
  EmitArtifact("acme_text", "string", [](Payload& p) { p.text() = "no span"; });
  const pid_t child = fork();
  if (child == 0) {
    order.Executed(compiled, "child", 1'000'000);
    Stop();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Flush();
  sink->Send(otel.timeout);
  Stop();
  const OtelStats stats = sink->stats();
  std::printf("sent %llu dropped %llu rejected %llu failed %llu\n%s",
              static_cast<unsigned long long>(stats.sent_count),
              static_cast<unsigned long long>(stats.dropped_count),
              static_cast<unsigned long long>(stats.rejected_count),
              static_cast<unsigned long long>(stats.failed_request_count),
              PrometheusText(GetStats()).c_str());
  return 0;
}
