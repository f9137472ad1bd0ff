#include "facts/compiles/cuda_graphs.h"

#include <algorithm>

#include "artifacts/common/text/python_traceback.h"
#include "queries/facts/compiles/cuda_graphs.h"

namespace tlparse {
namespace {

// Beginnings of reasons, with what to try (torch/_inductor/cudagraph_utils.py, compile_fx.py, lowering.py,
// torch/_dynamo/backends/cudagraphs.py).
constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
    {"cpu device",
     "keep what is computed on the CPU out of the compiled function, or move it to the GPU"},
    {"multiple devices", "give the compiled function tensors of one device"},
    {"mutated inputs",
     "return the new value instead of writing into an input, or mark the input with "
     "torch._dynamo.mark_static_address"},
    {"incompatible op", "keep the operator out of the compiled function"},
    {"control flow operator", "keep the operator out of the compiled function"},
    {"index_put_ fallback with boolean", "index with integers, or use torch.where"},
    {"graph with symbolic shapes", "pad the inputs to a few sizes"},
    {"cpp-wrapper does not support graph partition",
     "unset TORCHINDUCTOR_CPP_WRAPPER, or set torch._inductor.config.graph_partition = False"},
};

constexpr std::string_view kIntroductions[] = {
    "skipping cudagraphs due to ", "skipping cudagraph due to ", "disabling cudagraphs due to ",
    "disabling cudagraphs for backward due to ", "['"};

}  // namespace

CudaGraphSkip ReadCudaGraphSkip(std::string_view text) {
  CudaGraphSkip skip;
  const std::size_t found = text.find("Found from");
  if (found != std::string_view::npos) {
    std::optional<PythonFrame> frame = LastFrame(text.substr(found), true);
    if (!frame) frame = LastFrame(text.substr(found));
    if (frame) {
      skip.file = frame->file;
      skip.line = frame->line;
    }
  }
  std::string_view reason = text.substr(0, found);
  for (bool is_shorter = true; is_shorter;) {
    const auto* const introduction =
        std::find_if(std::begin(kIntroductions), std::end(kIntroductions),
                     [&](std::string_view one) { return reason.starts_with(one); });
    is_shorter = introduction != std::end(kIntroductions);
    if (is_shorter) reason.remove_prefix(introduction->size());
  }
  if (reason.ends_with("']")) reason.remove_suffix(2);
  while (!reason.empty() && std::string_view(" \n.").find(reason.back()) != std::string_view::npos)
    reason.remove_suffix(1);
  skip.reason = reason;
  skip.is_chosen = reason == "bisector" || reason == "override_cudagraphs annotation";
  for (const auto& [begin, advice] : kAdvice)
    if (reason.starts_with(begin)) skip.advice = advice;
  return skip;
}

Result<CudaGraphs> LoadCudaGraphs(Database& database, std::int64_t compile_id) {
  CudaGraphs graphs;
  FOR_EACH_ROW(const CudaGraphOfCompile& row,
               Query<CudaGraphOfCompile>(database, {.compile_id = compile_id})) {
    graphs.recordings.push_back({row.is_backward, row.recordings, row.duration_us / 1e6});
  }
  FOR_EACH_ROW(const SkipOfCompile& row,
               Query<SkipOfCompile>(database, {.compile_id = compile_id})) {
    graphs.skips.push_back(ReadCudaGraphSkip(row.reason));
  }
  return graphs;
}

}  // namespace tlparse
