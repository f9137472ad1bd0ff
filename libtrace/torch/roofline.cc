#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/Device.h>
#include <c10/core/InferenceMode.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>

#include "core/errno_scope.h"
#include "core/signal_guard.h"
#include "core/thread_id.h"
#include "libtrace/torch/cost_model.h"

namespace libtrace {
namespace {

// Least of several runs: what the machine can do, not what else it was doing.
template <class F>
double LeastSeconds(int runs, F&& run) {
  double least_s = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    least_s = std::min(
        least_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return std::max(least_s, 1e-9);
}

Roofline Measure(const c10::Device& device) {
  const at::DisableRecordFunctionGuard unobserved;
  const c10::InferenceMode without_autograd;
  const auto on_device = at::TensorOptions().device(device);
  Roofline roofline;
  const bool is_cpu = device.is_cpu();
  // A copy to the host waits for what was enqueued on a GPU.
  const auto wait = [&](const at::Tensor& result) {
    if (!is_cpu) result.flatten().slice(0, 0, 1).cpu();
  };

  const int64_t side = is_cpu ? 384 : 4096;
  const at::Tensor left = at::ones({side, side}, on_device);
  const at::Tensor right = at::ones({side, side}, on_device);
  at::Tensor product = at::ones({side, side}, on_device);
  at::mm_out(product, left, right);  // the first call sets up the library
  wait(product);
  const double product_s = LeastSeconds(8, [&] {
    at::mm_out(product, left, right);
    wait(product);
  });
  const auto sides = static_cast<double>(side);
  roofline.flops_per_s = 2.0 * sides * sides * sides / product_s;

  const int64_t count = is_cpu ? 4 << 20 : 64 << 20;  // more than caches hold
  const at::Tensor source = at::ones({count}, on_device);
  at::Tensor target = at::ones({count}, on_device);
  const double copy_s = LeastSeconds(4, [&] {
    target.copy_(source);
    wait(target);
  });
  roofline.bytes_per_s = 2.0 * static_cast<double>(count) * sizeof(float) / copy_s;

  const at::Tensor small = at::ones({4}, on_device);
  at::Tensor sum = at::ones({4}, on_device);
  constexpr int kCalls = 1000;
  const double calls_s = LeastSeconds(4, [&] {
    for (int i = 0; i < kCalls; ++i) at::add_out(sum, small, small);
    wait(sum);
  });
  roofline.op_overhead_ns = 1e9 * calls_s / kCalls;
  return roofline;
}

// Measures on a new thread, for which OpenMP starts new worker threads: in a forked child, which has no
// worker threads of its parent, an op on the thread that called fork would wait for them.
Roofline MeasureCpu() {
  Roofline roofline;
  std::exception_ptr failure;
  const auto measure = [&] {
    try {
      roofline = Measure(c10::Device(c10::kCPU));
    } catch (...) {
      failure = std::current_exception();
    }
  };
  try {
    const detail::AllSignalsBlocked blocked;
    std::thread(measure).join();
  } catch (const std::system_error&) {  // the process may not have another thread
    measure();
  }
  if (failure) std::rethrow_exception(failure);
  return roofline;
}

// One measurement of a kind of device. No static object is made under a guard, and no lock is taken.
struct Measurement {
  std::atomic<const Roofline*> result{nullptr};  // never freed: used until the process ends
  std::atomic<uint32_t> measuring_process{0};    // 0 = nobody measures
};
constinit Measurement cpu, cuda;
constinit std::atomic<bool> is_cuda_unusable{false};

// A fork waits for the end of a measurement, for a second at most. Official builds of libtorch multiply
// with MKL, which has locks. A child that is forked while a thread holds one hangs when it multiplies.
constinit std::atomic<int> forking{0};

bool IsMeasuring() {
  const uint32_t process = detail::ProcessId();
  return cpu.measuring_process == process || cuda.measuring_process == process;
}

void BeforeFork() {
  ++forking;
  for (int waited_ms = 0; IsMeasuring() && waited_ms < 1000; ++waited_ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

[[gnu::constructor]] void RegisterForkHandlers() {
  pthread_atfork(
      BeforeFork, [] { --forking; }, [] { forking = 0; });
}

// Throws what libtorch throws; the next call then tries again.
template <class Run>
const Roofline& ResultOf(Measurement& measurement, Run&& measure) {
  const uint32_t process = detail::ProcessId();
  for (;;) {
    if (const Roofline* const known = measurement.result.load()) return *known;
    uint32_t seen = measurement.measuring_process.load();
    if (seen != process && measurement.measuring_process.compare_exchange_strong(seen, process)) {
      if (forking == 0) break;
      measurement.measuring_process.store(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // another thread measures, or forks
  }
  try {
    if (measurement.result.load() == nullptr) measurement.result.store(new Roofline(measure()));
  } catch (...) {
    measurement.measuring_process.store(0);
    throw;
  }
  measurement.measuring_process.store(0);
  return *measurement.result.load();
}

}  // namespace

const Roofline& MeasuredRoofline() {
  const detail::ErrnoScope keeps_errno;
  return ResultOf(cpu, MeasureCpu);
}

const Roofline* MeasuredRoofline(std::string_view device) {
  const std::string_view kind = device.substr(0, device.find(':'));
  if (kind == "cpu") return &MeasuredRoofline();
  if (kind != "cuda") return nullptr;
  if (is_cuda_unusable) return nullptr;
  const detail::ErrnoScope keeps_errno;
  try {
    return &ResultOf(cuda, [] { return Measure(c10::Device(c10::kCUDA)); });
  } catch (const std::exception&) {  // a libtorch without CUDA, or no memory left on the GPU
    is_cuda_unusable = true;
    return nullptr;
  }
}

}  // namespace libtrace
