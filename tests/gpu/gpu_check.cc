// Does libtrace::cuda see what a real GPU runs, and who launched it? Runs kernels, copies and a CUDA
// graph under nested ops and on two threads, compares what was seen with what was done, and prints
// a page in Markdown.
//
// usage: TORCH_TRACE=<directory> libtrace_gpu_check
// Exit code: 0 all is as it should be, 1 something is not, 77 there is no GPU here.
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "libtrace/compile.h"
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/trace.h"
#include "tests/gpu/driver.h"
#include "tests/gpu/other_client.h"

namespace gpu_check {
namespace {

using libtrace::CudaActivity;
using libtrace::CudaActivityRecord;
using libtrace::CudaLaunchScope;

constexpr uint32_t kCount = 1 << 20;  // floats
constexpr uint64_t kBytes = uint64_t{kCount} * sizeof(float);

int64_t Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Gpu {
  Driver driver;
  int device = 0;
  Context context = nullptr;
  Function fill = nullptr, spin = nullptr;
  DevicePointer buffer = 0, other = 0;
  Stream stream = nullptr;
  int failed_calls = 0;

  void Must(int result) { failed_calls += result != 0; }
  void Fill(Stream on = nullptr) {
    uint32_t count = kCount;
    void* parameters[] = {&buffer, &count};
    Must(driver.launch(fill, kCount / 256, 1, 1, 256, 1, 1, 0, on, parameters, nullptr));
  }
  void Spin(uint64_t duration_ns) {
    void* parameters[] = {&duration_ns};
    Must(driver.launch(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  }
};

bool SetUp(Gpu& gpu) {
  const Driver& driver = gpu.driver;
  Module module = nullptr;
  gpu.Must(driver.device_get(&gpu.device, 0));
  gpu.Must(driver.retain_context(&gpu.context, gpu.device));
  gpu.Must(driver.set_context(gpu.context));
  gpu.Must(driver.load_module(&module, KernelText()));
  if (gpu.failed_calls != 0) return false;
  gpu.Must(driver.get_function(&gpu.fill, module, "acme_fill"));
  gpu.Must(driver.get_function(&gpu.spin, module, "acme_spin"));
  gpu.Must(driver.allocate(&gpu.buffer, kBytes));
  gpu.Must(driver.allocate(&gpu.other, kBytes));
  gpu.Must(driver.stream_create(&gpu.stream, 1));  // does not wait for the default stream
  gpu.Fill();
  gpu.Must(driver.synchronize());
  return gpu.failed_calls == 0;
}

void PrintMachine(const Gpu& gpu, const CudaActivity& activity) {
  utsname system{};
  uname(&system);
  char name[256] = "";
  int version = 0, major = 0, minor = 0, count = 0;
  gpu.driver.device_name(name, sizeof(name) - 1, gpu.device);
  gpu.driver.version(&version);
  gpu.driver.device_count(&count);
  gpu.driver.device_attribute(&major, 75, gpu.device);
  gpu.driver.device_attribute(&minor, 76, gpu.device);
  std::printf("# libtrace::cuda on a GPU\n\n");
  std::printf("* %s, compute capability %d.%d, %d device(s)\n", name, major, minor, count);
  std::printf("* driver for CUDA %d.%d, %s %s %s\n", version / 1000, version % 1000 / 10,
              system.sysname, system.release, system.machine);
  std::printf("* CUPTI: %s\n",
              activity.status().ok() ? "watching" : activity.status().message().c_str());
}

// What is launched here is checked in CheckAttribution.
void RunOps(Gpu& gpu) {
  std::vector<float> host(kCount, 2);
  const std::string mm = "mm_3", relu = "relu_4";
  {
    const CudaLaunchScope copy("aten::copy_", nullptr);
    gpu.Must(gpu.driver.copy_to_device(gpu.buffer, host.data(), kBytes));
  }
  {
    const CudaLaunchScope outer("aten::mm", &mm);
    gpu.Fill();
    {
      const CudaLaunchScope inner("aten::relu", &relu);
      gpu.Fill();
    }
    gpu.Fill();
  }
  {
    const CudaLaunchScope zero("aten::zero_", nullptr);
    gpu.Must(gpu.driver.set(gpu.buffer, 0, kCount, nullptr));
  }
  {
    const CudaLaunchScope clone("aten::clone", nullptr);
    gpu.Must(gpu.driver.copy_on_device(gpu.other, gpu.buffer, kBytes, nullptr));
  }
  gpu.Fill();  // belongs to no op
  gpu.Must(gpu.driver.synchronize());
  const auto thread = [&gpu](const char* op) {
    gpu.driver.set_context(gpu.context);
    for (int i = 0; i < 100; ++i) {
      const CudaLaunchScope scope(op, nullptr);
      uint32_t count = kCount;
      void* parameters[] = {&gpu.buffer, &count};
      gpu.driver.launch(gpu.fill, kCount / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr);
    }
  };
  std::thread first(thread, "thread::a"), second(thread, "thread::b");
  first.join();
  second.join();
  gpu.Must(gpu.driver.copy_to_host(host.data(), gpu.buffer, kBytes));
  gpu.Must(gpu.driver.synchronize());
}

// False: the driver does not capture graphs here.
bool RunGraph(Gpu& gpu) {
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  if (gpu.driver.begin_capture(gpu.stream, 2) != 0) return false;  // 2: relaxed
  gpu.Fill(gpu.stream);
  gpu.Fill(gpu.stream);
  if (gpu.driver.end_capture(gpu.stream, &graph) != 0) return false;
  if (gpu.driver.instantiate(&exec, graph, 0) != 0) return false;
  for (int i = 0; i < 3; ++i) {
    const CudaLaunchScope scope("graph::launch", nullptr);
    gpu.Must(gpu.driver.launch_graph(exec, gpu.stream));
  }
  gpu.Must(gpu.driver.synchronize());
  return true;
}

// False: there is one GPU.
bool RunPeerCopy(Gpu& gpu) {
  int count = 0, device = 0;
  gpu.driver.device_count(&count);
  if (count < 2) return false;
  Context context = nullptr;
  DevicePointer target = 0;
  gpu.Must(gpu.driver.device_get(&device, 1));
  gpu.Must(gpu.driver.retain_context(&context, device));
  gpu.Must(gpu.driver.set_context(context));
  gpu.Must(gpu.driver.allocate(&target, kBytes));
  gpu.Must(gpu.driver.set_context(gpu.context));
  {
    const CudaLaunchScope scope("peer::copy", nullptr);
    gpu.Must(gpu.driver.copy_peer(target, context, gpu.buffer, gpu.context, kBytes));
  }
  gpu.Must(gpu.driver.synchronize());
  return true;
}

using Records = std::vector<CudaActivityRecord>;

size_t Count(const Records& records, const std::function<bool(const CudaActivityRecord&)>& is) {
  return static_cast<size_t>(std::count_if(records.begin(), records.end(), is));
}

void CheckAttribution(Page& page, const Records& records, bool has_graph, bool has_peer) {
  const auto kernels = [&](const char* op, const char* node, size_t expected) {
    const size_t seen = Count(records, [&](const CudaActivityRecord& r) {
      return r.kind == "kernel" && r.op == op && r.node.value_or("") == node;
    });
    page.Check(seen == expected, std::string("kernels of ") + op + (*node ? ", node " : "") + node,
               std::to_string(seen) + " of " + std::to_string(expected));
  };
  kernels("aten::mm", "mm_3", 2);
  kernels("aten::relu", "relu_4", 1);
  kernels("thread::a", "", 100);
  kernels("thread::b", "", 100);
  if (has_graph) kernels("graph::launch", "", 6);
  const size_t nobodys = Count(records, [](const CudaActivityRecord& r) { return !r.op; });
  page.Check(nobodys == 2, "a kernel and a copy outside ops belong to none",
             std::to_string(nobodys) + " of 2");
  const auto copies = [&](const char* name, const char* op) {
    const size_t seen = Count(records, [&](const CudaActivityRecord& r) {
      return r.kind != "kernel" && r.name == name && r.op.value_or("") == op &&
             r.size_bytes == kBytes;
    });
    page.Check(seen == 1, std::string(name) + " with op and size", std::to_string(seen) + " of 1");
  };
  copies("HtoD", "aten::copy_");
  copies("memset", "aten::zero_");
  copies("DtoD", "aten::clone");
  copies("DtoH", "");
  if (has_peer) copies("PtoP", "peer::copy");
  const size_t named =
      Count(records, [](const CudaActivityRecord& r) { return r.name == "acme_fill"; });
  page.Check(named == (has_graph ? 210u : 204u), "kernels by name", std::to_string(named));
  if (has_graph) {
    const size_t in_graph =
        Count(records, [](const CudaActivityRecord& r) { return r.graph_id != 0; });
    page.Check(in_graph == 6, "kernels that know their graph", std::to_string(in_graph) + " of 6");
  }
}

void CheckTimes(Page& page, const Records& records, const CudaActivity& activity, int64_t begin_ns,
                int64_t end_ns) {
  const size_t ended =
      Count(records, [](const CudaActivityRecord& r) { return r.has_ended && r.duration_ns > 0; });
  page.Check(ended == records.size(), "everything has a duration",
             std::to_string(ended) + " of " + std::to_string(records.size()));
  // Of one stream, one after the other.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const CudaActivityRecord*>> streams;
  for (const CudaActivityRecord& r : records) streams[{r.device, r.stream}].push_back(&r);
  size_t overlaps = 0;
  for (auto& [stream, list] : streams) {
    std::sort(list.begin(), list.end(),
              [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
    for (size_t i = 1; i < list.size(); ++i)
      overlaps += list[i]->start_ns < list[i - 1]->start_ns + list[i - 1]->duration_ns;
  }
  page.Check(
      overlaps == 0, "in a stream one begins after the other has ended",
      std::to_string(overlaps) + " overlap in " + std::to_string(streams.size()) + " stream(s)");
  const auto of = [&](const char* op) {
    const auto place = std::find_if(records.begin(), records.end(),
                                    [&](const CudaActivityRecord& r) { return r.op == op; });
    return place == records.end() ? 0 : place->start_ns;
  };
  page.Check(of("aten::copy_") < of("aten::mm") && of("aten::mm") < of("aten::relu") &&
                 of("aten::relu") < of("aten::zero_") && of("aten::zero_") < of("aten::clone"),
             "ops in the order in which they were launched");
  const auto clocks = activity.clocks();
  if (clocks.size() != 2) return page.Check(false, "the clock was read at start and end");
  const int64_t offset_ns = clocks[0].epoch_ns - static_cast<int64_t>(clocks[0].cupti_ns);
  const int64_t drift_ns =
      clocks[1].epoch_ns - static_cast<int64_t>(clocks[1].cupti_ns) - offset_ns;
  const int64_t slack_ns =
      std::abs(drift_ns) + static_cast<int64_t>(clocks[0].error_ns + clocks[1].error_ns);
  size_t inside = 0;
  for (const CudaActivityRecord& r : records) {
    const int64_t start_ns = static_cast<int64_t>(r.start_ns) + offset_ns;
    inside += start_ns >= begin_ns - slack_ns &&
              start_ns + static_cast<int64_t>(r.duration_ns) <= end_ns + slack_ns;
  }
  page.Check(inside == records.size(), "all between launching and synchronising, on our clock",
             std::to_string(inside) + " of " + std::to_string(records.size()) +
                 "; readings off by " +
                 std::to_string(std::max(clocks[0].error_ns, clocks[1].error_ns)) +
                 " ns at most, drift " + std::to_string(drift_ns) + " ns in " +
                 std::to_string((clocks[1].epoch_ns - clocks[0].epoch_ns) / 1'000'000) + " ms");
}

void CheckRunning(Page& page, Gpu& gpu) {
  CudaActivity activity;
  {
    const CudaLaunchScope scope("long", nullptr);
    gpu.Spin(500'000'000);
  }
  activity.Emit();
  gpu.Must(gpu.driver.synchronize());
  const Records records = activity.Records();
  const size_t zero =
      Count(records, [](const CudaActivityRecord& r) { return r.has_ended && r.duration_ns == 0; });
  page.Check(zero == 0, "a kernel that runs at Emit has no duration, or its own",
             std::to_string(records.size()) + " listed");
}

double LaunchNs(Gpu& gpu, bool has_scope) {
  constexpr int kLaunches = 20'000, kBatch = 500;
  int64_t total_ns = 0;
  for (int i = 0; i < kLaunches; i += kBatch) {
    const int64_t start_ns = Now(CLOCK_MONOTONIC);
    for (int j = 0; j < kBatch; ++j) {
      if (!has_scope) {
        gpu.Spin(0);
        continue;
      }
      const CudaLaunchScope scope("aten::add", nullptr);
      gpu.Spin(0);
    }
    total_ns += Now(CLOCK_MONOTONIC) - start_ns;
    gpu.Must(gpu.driver.synchronize());
  }
  return static_cast<double>(total_ns) / kLaunches;
}

void PrintOverhead(Gpu& gpu) {
  LaunchNs(gpu, false);
  const double off_ns = LaunchNs(gpu, false);
  const double scope_off_ns = LaunchNs(gpu, true);
  double on_ns = 0, scope_ns = 0;
  uint64_t lost_count = 0;
  {
    CudaActivity activity;
    on_ns = LaunchNs(gpu, false);
    scope_ns = LaunchNs(gpu, true);
    activity.Emit();
    lost_count = activity.lost_count();
  }
  std::printf("\n## Cost of one launch, in ns\n\n");
  std::printf("| | not watched | watched |\n|---|---|---|\n");
  std::printf("| no op | %.0f | %.0f |\n| in an op's scope | %.0f | %.0f |\n", off_ns, on_ns,
              scope_off_ns, scope_ns);
  std::printf("\n40,000 launches while watched, %llu records lost.\n",
              static_cast<unsigned long long>(lost_count));
}

void PrintTable(const Records& records) {
  std::printf(
      "\n## By op\n\n| op | node | kind | name | count | total ns |\n|---|---|---|---|---|---|\n");
  std::map<std::vector<std::string>, std::pair<size_t, uint64_t>> sums;
  for (const CudaActivityRecord& r : records) {
    auto& [count, total_ns] = sums[{r.op.value_or(""), r.node.value_or(""), r.kind, r.name}];
    ++count;
    total_ns += r.duration_ns;
  }
  for (const auto& [key, sum] : sums) {
    std::printf("| %s | %s | %s | %s | %zu | %llu |\n", key[0].c_str(), key[1].c_str(),
                key[2].c_str(), key[3].c_str(), sum.first,
                static_cast<unsigned long long>(sum.second));
  }
}

int Run() {
  Gpu gpu;
  if (const std::string reason = Open(gpu.driver); !reason.empty()) {
    std::printf("skipped: %s\n", reason.c_str());
    return 77;
  }
  if (!libtrace::IsEnabled()) {
    std::printf("tracing is off: set TORCH_TRACE\n");
    return 1;
  }
  Page page;
  libtrace::Frame frame;
  libtrace::Compile compile(frame, {.function = "gpu_check", .file = "gpu_check.cc", .line = 1});
  const bool is_set_up = SetUp(gpu);
  CudaActivity activity;
  PrintMachine(gpu, activity);
  std::printf("\n| | what | seen |\n|---|---|---|\n");
  page.Check(is_set_up, "context, kernels from PTX text, memory");
  page.Check(activity.status().ok(), "CudaActivity watches");
  if (page.is_wrong()) return 1;
  const int64_t begin_ns = Now(CLOCK_REALTIME);
  RunOps(gpu);
  const bool has_graph = RunGraph(gpu);
  const bool has_peer = RunPeerCopy(gpu);
  const int64_t end_ns = Now(CLOCK_REALTIME);
  activity.Emit();
  const Records records = activity.Records();
  CheckAttribution(page, records, has_graph, has_peer);
  CheckTimes(page, records, activity, begin_ns, end_ns);
  page.Check(activity.lost_count() == 0, "nothing lost");
  CheckRunning(page, gpu);
  CheckBesideAnotherClient(page, [&] {
    gpu.Fill();
    gpu.Must(gpu.driver.synchronize());
  });
  page.Check(gpu.failed_calls == 0, "all calls of the driver succeeded");
  if (!has_graph) std::printf("\nNot tried: CUDA graphs (the driver does not capture here).\n");
  if (!has_peer) std::printf("\nNot tried: copies between GPUs (there is one).\n");
  PrintOverhead(gpu);
  PrintTable(records);
  std::printf("\n%s\n", page.is_wrong() ? "WRONG: see above" : "All as it should be.");
  return page.is_wrong() ? 1 : 0;
}

}  // namespace
}  // namespace gpu_check

int main() { return gpu_check::Run(); }
