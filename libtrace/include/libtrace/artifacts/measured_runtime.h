// libtrace_measured_runtime: the measured run times of the ops of one graph (or of the process).
// Schema: libtrace_measured_runtime.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libtrace/array_view.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct MeasuredOp {
  std::string name{};  // as in inductor_runtime_and_tensor_meta, so that the two join
  std::optional<std::string> node{};  // graph node, where known
  uint64_t count = 0;
  double total_ns = 0;
  double min_ns = 0;
  double max_ns = 0;
  std::optional<double> estimated_runtime_ns{};  // of one execution
};

// `clock` says what was measured: `cpu` (wall time of the call), `cuda` (device time of the
// kernels).
void EmitMeasuredRuntime(ArrayView<MeasuredOp> ops, std::string_view clock,
                         CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT
