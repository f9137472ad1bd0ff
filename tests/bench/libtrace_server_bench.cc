// What a request costs a server in CPU time: tracing off, on, with spans for OpenTelemetry, with the
// activities of CUDA. Each round runs all four one after the other, and what is compared are
// differences within a round.
//
// usage: LIBTRACE_CUPTI=<stand-in for CUPTI> libtrace_server_bench FOLDER [ROUNDS]
// A request asks a cache, calls a graph and launches 20 kernels under 5 ops. The stand-in's own work,
// which writes CUPTI's records, counts as that of CUDA; the collector is another process.
#include <dlfcn.h>
#include <httplib.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/compile.h"
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/otel/otel_sink.h"
#include "libtrace/trace.h"
#include "libtrace/traceparent.h"

namespace {

constexpr int kRequests = 5000;
enum Mode { kOff, kOn, kOtel, kCuda, kModeCount };
constexpr const char* kNames[] = {"off", "on", "on, with OpenTelemetry",
                                  "on, with CUDA's activities"};

// A collector that takes everything, until it is killed.
pid_t StartCollector(int& port) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    httplib::Server server;
    server.Post("/v1/traces", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("{}", "application/json");
    });
    port = server.bind_to_any_port("127.0.0.1");
    if (write(ends[1], &port, sizeof port) != sizeof port) _exit(1);
    server.listen_after_bind();
    _exit(0);
  }
  if (read(ends[0], &port, sizeof port) != sizeof port) std::exit(1);
  return child;
}

double CpuNs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

class Server {
 public:
  Server() {
    libtrace::Compile compile(frame_, {.function = "score"});
    compile_id_ = compile.id();
    void* const cupti = dlopen(std::getenv("LIBTRACE_CUPTI"), RTLD_NOW);
    launch_ = cupti == nullptr ? nullptr : reinterpret_cast<Launch>(dlsym(cupti, "standin_launch"));
    if (launch_ == nullptr) std::exit(2);
  }
  void Answer(const std::string& traceparent) {
    const libtrace::TraceparentScope request(traceparent);
    libtrace::EmitCacheEvent("acme_kernel", libtrace::CacheState::kHit,
                             [](libtrace::CacheInfo& info) { info.key = "k1"; });
    for (const char* op : {"aten::mm", "aten::relu", "aten::add", "aten::softmax", "aten::sum"}) {
      const libtrace::CudaLaunchScope scope(op, nullptr);
      for (int i = 0; i < 4; ++i) launch_("kernel", 10, 7);
    }
    calls_.Executed(compile_id_, "score", 1000);
  }

 private:
  using Launch = void (*)(const char*, uint64_t, uint32_t);
  libtrace::Frame frame_;
  libtrace::CompileId compile_id_;
  libtrace::GraphExecutionOrder calls_{
      libtrace::GraphExecutionOrder::Options{.per_execution = true, .max_size = 1000}};
  Launch launch_ = nullptr;
};

struct Lost {
  uint64_t records = 0, spans = 0, activities = 0;
};

// CPU time of a request, in ns.
double Measure(Mode mode, const std::string& folder, int port, Lost& lost) {
  std::filesystem::remove_all(folder);
  std::shared_ptr<libtrace::OtelSink> otel;
  if (mode != kOff) {
    libtrace::Options options;
    options.directory = folder;
    if (mode == kOtel) {
      libtrace::OtelOptions to;
      to.port = static_cast<uint16_t>(port);
      to.max_spans = 1'000'000;
      otel = libtrace::MakeOtelSink(libtrace::MakeFileSink({.directory = folder}), to);
      options.sink = otel;
    }
    if (!libtrace::Start(std::move(options))) std::exit(1);
  }
  std::vector<std::string> requests;
  for (int i = 0; i < kRequests; ++i) requests.push_back(libtrace::NewTraceparent());
  std::unique_ptr<libtrace::CudaActivity> activity;
  if (mode == kCuda) {
    activity = std::make_unique<libtrace::CudaActivity>(libtrace::CudaActivityOptions{
        .write_interval = std::chrono::milliseconds(50), .max_bytes = 64 << 20});
    if (!activity->status().ok()) std::exit(1);
  }
  double ns = 0;
  {
    Server server;
    const double begin_ns = CpuNs();
    for (const std::string& request : requests) server.Answer(request);
    if (activity != nullptr) activity->Emit();
    libtrace::Flush();
    if (otel != nullptr) otel->Send(std::chrono::seconds(60));
    ns = (CpuNs() - begin_ns) / kRequests;
  }
  lost.records += libtrace::GetStats().lost_record_count;
  if (activity != nullptr) lost.activities += activity->lost_count();
  if (otel != nullptr) lost.spans += otel->stats().dropped_count + otel->stats().rejected_count;
  activity.reset();
  libtrace::Stop();
  return ns;
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int port = 0;
  const pid_t collector = StartCollector(port);
  std::vector<double> taken[kModeCount];
  Lost lost;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 10;
  for (int round = 0; round < rounds; ++round) {
    for (int mode = 0; mode < kModeCount; ++mode)
      taken[mode].push_back(Measure(static_cast<Mode>(mode), argv[1], port, lost));
  }
  for (int mode = 0; mode < kModeCount; ++mode) {
    std::vector<double> more;
    for (int round = 0; round < rounds; ++round)
      more.push_back(taken[mode][static_cast<size_t>(round)] -
                     taken[mode > kOn ? kOn : kOff][static_cast<size_t>(round)]);
    std::printf("| %s | %.1f us | %+.1f us |\n", kNames[mode], MedianOf(taken[mode]) / 1000,
                MedianOf(more) / 1000);
  }
  std::printf("lost: %llu records, %llu spans, %llu activities\n",
              static_cast<unsigned long long>(lost.records),
              static_cast<unsigned long long>(lost.spans),
              static_cast<unsigned long long>(lost.activities));
  kill(collector, SIGKILL);
  waitpid(collector, nullptr, 0);
  std::filesystem::remove_all(argv[1]);
}
