#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>

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

Roofline Measure() {
  const at::DisableRecordFunctionGuard unobserved;
  const c10::InferenceMode without_autograd;
  Roofline roofline;

  constexpr int64_t kSide = 384;
  const at::Tensor left = at::ones({kSide, kSide}), right = at::ones({kSide, kSide});
  at::Tensor product = at::ones({kSide, kSide});
  at::mm_out(product, left, right);  // the first call sets up the library
  const double product_s = LeastSeconds(8, [&] { at::mm_out(product, left, right); });
  roofline.flops_per_s = 2.0 * kSide * kSide * kSide / product_s;

  constexpr int64_t kCount = 4 << 20;  // 16 MiB each way: more than caches hold
  const at::Tensor source = at::ones({kCount});
  at::Tensor target = at::ones({kCount});
  const double copy_s = LeastSeconds(4, [&] { target.copy_(source); });
  roofline.bytes_per_s = 2.0 * kCount * sizeof(float) / copy_s;

  const at::Tensor small = at::ones({4});
  at::Tensor sum = at::ones({4});
  constexpr int kCalls = 1000;
  const double calls_s = LeastSeconds(4, [&] {
    for (int i = 0; i < kCalls; ++i) at::add_out(sum, small, small);
  });
  roofline.op_overhead_ns = 1e9 * calls_s / kCalls;
  return roofline;
}

}  // namespace

const Roofline& MeasuredRoofline() {
  static const Roofline roofline = Measure();
  return roofline;
}

}  // namespace libtrace
