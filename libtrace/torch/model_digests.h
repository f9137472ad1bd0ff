// Digests that models and observers emit of their runs (TorchScriptOptions::digest_every).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "libtrace/call_site.h"
#include "libtrace/scope.h"
#include "libtrace/torch/run_digest.h"

namespace libtrace {

// Numbers the runs of one graph from 0. Thread-safe.
class RunNumbers {
 public:
  // A run begins: its number if it is to be hashed. Only while tracing is on.
  std::optional<uint64_t> Next(uint32_t digest_every) noexcept {
    if (digest_every == 0) return {};
    const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    if (number % digest_every != 0) return {};
    return number;
  }

 private:
  std::atomic<uint64_t> next_{0};
};

// `context` is that of the graph's compile, `code` what was hashed once for all runs. What libtorch
// throws costs the digest.
void EmitRunDigest(const std::string& graph, uint64_t call, const Context& context,
                   const std::optional<RunDigest>& code, const c10::IValue& outputs,
                   CallSite location) noexcept;

}  // namespace libtrace
