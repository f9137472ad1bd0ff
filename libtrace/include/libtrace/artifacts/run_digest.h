// libtrace_run_digest: hashes of one run of a graph: the code of its kernels, the choices of
// autotuning, its outputs. `tlparse diff` of two runs of a program reports those that differ: a
// deterministic program has none. Schema: libtrace_run_digest.schema.json.
//
//   libtrace::RunDigest digest("forward", call);
//   digest.Kernel("fused_mm", code).Choice("mm(64, 64)", "triton_mm_4");
//   digest.Output("0", "float32[2, 3]", {reinterpret_cast<const char*>(data), size_bytes});
//   digest.Emit();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Not thread-safe. Hashing costs about 2 ns a byte; when tracing is off nothing is hashed or kept. A
// digest that was begun or added to while tracing was off is not emitted: it would lack parts.
class RunDigest {
 public:
  // `graph` distinguishes graphs of one compile (`forward`, `backward`, a name). `call` counts the
  // runs of the graph from 0; those that are not hashed count too, so that equal numbers of two runs
  // are the same call.
  explicit RunDigest(std::string_view graph, uint64_t call = 0) noexcept;

  // For an output `name` is its position, `type` its type and shape, and `bytes` its content, which
  // must be equal. Names of one kind are unique.
  RunDigest& Output(std::string_view name, std::string_view type, std::string_view bytes) noexcept;
  RunDigest& Kernel(std::string_view name, std::string_view code) noexcept;
  // `choice` is kept as text, not hashed.
  RunDigest& Choice(std::string_view name, std::string_view choice) noexcept;
  // Everything that `other` has, e.g. kernels that are hashed once for all runs.
  RunDigest& PartsOf(const RunDigest& other) noexcept;

  bool empty() const { return parts_.empty(); }
  // Emits the added items, if any, under the thread's compile.
  void Emit(CallSite location = CallSite::Current()) const noexcept;

 private:
  struct Part {
    std::string_view kind;  // literals
    std::string name;
    std::string text;
    std::string hash;
  };
  void Add(std::string_view kind, std::string_view name, std::string_view text,
           std::string_view bytes) noexcept;

  std::string graph_;
  uint64_t call_;
  bool has_all_ = true;
  std::vector<Part> parts_;
};

}  // namespace LIBTRACE_EXPORT
