#include "model/process_origin.h"

namespace tlparse {
namespace {

struct StartFrame {
  std::string_view file_end, function;  // an empty function: any
  ProcessOrigin origin;
};

// Frames below multiprocessing's own ones that tell what a process was started for.
constexpr StartFrame kStartFrames[] = {
    {"torch/multiprocessing/spawn.py", "_wrap", ProcessOrigin::kRankLauncher},
    {"torch/distributed/elastic/multiprocessing/api.py", "_wrap", ProcessOrigin::kRankLauncher},
    {"torch/utils/data/_utils/worker.py", "_worker_loop", ProcessOrigin::kLoaderWorker},
    {"concurrent/futures/process.py", "_process_worker", ProcessOrigin::kPoolWorker},
    {"multiprocessing/pool.py", "worker", ProcessOrigin::kPoolWorker},
};

bool IsFrame(const OriginFrame& frame, std::string_view file_end, std::string_view function) {
  return frame.file.ends_with(file_end) && (function.empty() || frame.function == function);
}

}  // namespace

ProcessOrigin OriginOf(const std::vector<OriginFrame>& frames) {
  ProcessOrigin origin = ProcessOrigin::kUnknown;
  for (const OriginFrame& frame : frames) {
    if (frame.file.find("torch/_inductor/compile_worker/") != std::string_view::npos)
      origin = ProcessOrigin::kCompileWorker;
    if (IsFrame(frame, "multiprocessing/process.py", "_bootstrap"))
      origin = ProcessOrigin::kMultiprocessing;
    for (const StartFrame& start : kStartFrames) {
      if (origin == ProcessOrigin::kMultiprocessing &&
          IsFrame(frame, start.file_end, start.function))
        origin = start.origin;
    }
  }
  return origin;
}

}  // namespace tlparse
