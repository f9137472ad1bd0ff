// The expected time of an op, from its FLOPs and bytes and the measured speed of the machine (a
// roofline).
//
// The formulas are our own and need no libtorch. FLOPs count a multiply-add as two. Bytes are what
// the op must move if caches help nothing: every input read and every output written once; a view
// moves none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct OpTensor {
  std::span<const int64_t> shape{};
  uint64_t size_bytes = 0;  // elements times their size; what is allocated may differ
};

struct OpCost {
  double flops = 0;
  double size_bytes = 0;
  // False: no formula fits the op, so that an estimate would be a guess. Random numbers, sorts and
  // searches, factorisations, transforms, recurrent networks, attention, backward convolutions, and
  // ops outside `aten`.
  bool is_known = true;
};

// `op` is libtorch's name (`aten::mm`). `is_view`: the outputs share the inputs' storage and
// nothing was written. Other ops without a formula of their own count one FLOP per element of their
// largest tensor.
OpCost CostOf(std::string_view op, std::span<const OpTensor> inputs,
              std::span<const OpTensor> outputs, bool is_view) noexcept;

// What a device was measured to do; the CPU with libtorch's thread count at that time.
struct Roofline {
  double flops_per_s = 0;     // float32 matrix product
  double bytes_per_s = 0;     // copy, read and written bytes
  double op_overhead_ns = 0;  // of calling an op that does almost nothing

  double EstimateNs(const OpCost& cost) const noexcept;
};

// Measured once per process and kind of device, at the first call (about 50 ms on an idle core);
// thread-safe. A child that is forked meanwhile measures for itself. The models of libtrace::torch
// call it while they load, if tracing is on, so that no request waits for it. A program that uses
// OpObserver alone, or starts a trace after its models are loaded, calls it before it serves. The ops
// it runs are not observed. Defined in libtrace::torch, as it runs libtorch's ops.
const Roofline& MeasuredRoofline();  // of the CPU
// `device` as in TensorMeta: `cpu`, `cuda:0` (one measurement is used for all of its kind). Null:
// libtorch cannot use it, or it is of a kind that is not measured (neither cpu nor cuda).
const Roofline* MeasuredRoofline(std::string_view device);

}  // namespace LIBTRACE_EXPORT
