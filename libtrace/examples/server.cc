// A server that compiles a kernel for each size it meets, keeps it in a cache, and traces both. docs/server.md walks through it.
//
// usage: libtrace_example_server CACHE_FOLDER PORT               serves until it is killed
//        libtrace_example_server CACHE_FOLDER PORT REQUESTS      sends itself so many requests, prints what they took, and ends
// GET /score?size=N (header traceparent), GET /metrics. Tracing is switched on as everywhere: TORCH_TRACE=FOLDER. With OTEL_PORT
// in the environment, spans go to a collector on this host.
#include <httplib.h>
#include <libtrace/artifacts/graph_execution.h>
#include <libtrace/cache/compile_cache.h>
#include <libtrace/compile.h>
#include <libtrace/otel/otel_sink.h>
#include <libtrace/prometheus.h>
#include <libtrace/trace.h>
#include <libtrace/traceparent.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

int64_t NsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

struct Kernel {
  std::string weights;  // what "compiling" makes
  libtrace::CompileId compile_id;
};

class Model {
 public:
  explicit Model(const std::string& folder)
      : cache_({.layer = "acme_kernel", .directory = folder}),
        calls_({.per_execution = true, .max_size = 10'000}) {}

  double Score(int size) {
    const Kernel& kernel = KernelFor(size);
    const Clock::time_point start = Clock::now();
    double sum = 0;
    for (const char weight : kernel.weights) sum += std::sqrt(static_cast<unsigned char>(weight));
    calls_.Executed(kernel.compile_id, "score", NsSince(start));
    return sum;
  }

 private:
  const Kernel& KernelFor(int size) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Kernel>& kernel = kernels_[size];
    if (kernel == nullptr) {
      libtrace::Compile compile(frame_,
                                {.function = "score", .file = "server.cc", .line = __LINE__});
      const libtrace::CacheKey key = libtrace::CacheKeyBuilder("k")
                                         .Add("size", std::to_string(size))
                                         .Add("version", "1")
                                         .Build();
      libtrace::CacheResult made = cache_.GetOrCompile(key, {}, [&] {
        std::string weights(static_cast<size_t>(size), ' ');
        for (int i = 0; i < size; ++i) weights[static_cast<size_t>(i)] = static_cast<char>(i * 7);
        return libtrace::CompileOutput{.entry = {.artifact = std::move(weights)}, .bypass = {}};
      });
      kernel = std::make_unique<Kernel>(Kernel{std::move(made.entry.artifact), compile.id()});
    }
    return *kernel;
  }

  libtrace::CompileCache cache_;
  libtrace::GraphExecutionOrder calls_;
  libtrace::Frame frame_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Kernel>> kernels_;
};

// What a server that stays up wants beside the variables of the environment.
void StartTrace() {
  libtrace::Options options = libtrace::Options::FromEnvironment();
  if (options.directory.empty()) return;
  options.async = libtrace::AsyncMode::kDrop;       // a request never waits for the disk
  options.rotate_size_bytes = uint64_t{64} << 20;   // a new file each 64 MiB,
  options.budget_size_bytes = uint64_t{256} << 20;  // and never more than 256 MiB in all
  if (options.limits.empty()) options.limits = {{"libtrace_graph_execution", 200, 1}};
  if (const char* const port = std::getenv("OTEL_PORT")) {
    libtrace::FileSinkOptions file;
    file.directory = options.directory;
    file.rotate_size_bytes = options.rotate_size_bytes;
    file.budget_size_bytes = options.budget_size_bytes;
    options.sink = libtrace::MakeOtelSink(
        libtrace::MakeFileSink(file),
        {.port = static_cast<uint16_t>(std::atoi(port)), .service_name = "score"});
  }
  libtrace::Start(std::move(options));
}

long PeakKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Sends requests on kept connections and prints their times.
void SendRequests(int port, long count) {
  constexpr long kThreads = 4;
  std::vector<std::vector<int64_t>> times_ns(kThreads);
  long early_kib = 0;
  std::vector<std::thread> threads;
  for (long t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      httplib::Client client("127.0.0.1", port);
      client.set_keep_alive(true);
      client.set_tcp_nodelay(true);
      times_ns[t].resize(static_cast<size_t>(count / kThreads));
      for (long i = 0; i < count / kThreads; ++i) {
        if (t == 0 && i == count / kThreads / 10) early_kib = PeakKib();
        const std::string path = "/score?size=" + std::to_string(100 + i % 16 * 100);
        const Clock::time_point start = Clock::now();
        const auto answer =
            client.Get(path.c_str(), httplib::Headers{{"traceparent", libtrace::NewTraceparent()}});
        if (!answer || answer->status != 200) std::exit(1);
        times_ns[t][static_cast<size_t>(i)] = NsSince(start);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> all;
  for (const auto& some : times_ns) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  const auto at_us = [&](double share) {
    return static_cast<double>(
               all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))]) /
           1000;
  };
  std::printf(
      "%zu requests: p50 %.0f us, p99 %.0f us, p99.9 %.0f us; peak memory %ld KiB, after a tenth "
      "%ld KiB\n",
      all.size(), at_us(0.5), at_us(0.99), at_us(0.999), PeakKib(), early_kib);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  StartTrace();
  Model model(argv[1]);
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(8); };
  server.set_keep_alive_max_count(1'000'000'000);
  server.set_tcp_nodelay(true);
  server.Get("/score", [&](const httplib::Request& request, httplib::Response& response) {
    const libtrace::TraceparentScope scope(request.get_header_value("traceparent"));
    const int size = std::atoi(request.get_param_value("size").c_str());
    if (size <= 0 || size > 1'000'000) return void(response.status = 400);
    response.set_content(std::to_string(model.Score(size)) + "\n", "text/plain");
  });
  server.Get("/metrics", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(libtrace::PrometheusText(libtrace::GetStats()),
                         "text/plain; version=0.0.4");
  });
  const int port = std::atoi(argv[2]);
  if (argc == 3) return server.listen("127.0.0.1", port) ? 0 : 1;
  std::thread listening([&] { server.listen("127.0.0.1", port); });
  while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  SendRequests(port, std::atol(argv[3]));
  server.stop();
  listening.join();
  libtrace::Stop();
  std::fputs(libtrace::PrometheusText(libtrace::GetStats()).c_str(), stdout);
}
