// What started a process, by the outermost frames of the Python stack of its first compile.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tlparse {

enum class ProcessOrigin : std::uint8_t {
  kUnknown,          // nothing of it in the stack: as if a launcher or a user started it
  kRankLauncher,     // torch.multiprocessing.spawn, torch.distributed.elastic: it is a rank
  kLoaderWorker,     // torch/utils/data/_utils/worker.py
  kCompileWorker,    // torch/_inductor/compile_worker
  kPoolWorker,       // concurrent.futures, multiprocessing.Pool
  kMultiprocessing,  // multiprocessing.Process, of a target that is none of these
};

struct OriginFrame {
  std::string_view file, function;
};

// `frames`: outermost first. A forked process has the frames of its parent before its own: the
// innermost start counts. A pure function.
ProcessOrigin OriginOf(const std::vector<OriginFrame>& frames);

}  // namespace tlparse
