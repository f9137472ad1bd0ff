#include "facts/compiles/cuda_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

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

// "cpu device (primals_1) at train.py:8" → "cpu device at train.py:8": the names of nodes differ by
// compile.
std::string WithoutNode(const std::string& skip) {
  const std::size_t begin = skip.find(" ("), end = skip.find(')', std::min(begin, skip.size()));
  return end == std::string::npos ? skip : skip.substr(0, begin) + skip.substr(end + 1);
}

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
  FOR_EACH_ROW(const CudaGraphSizes& row,
               Query<CudaGraphSizes>(database, {.compile_id = compile_id}))
    graphs.sizes.emplace_back(row.sizes);
  return graphs;
}

bool CudaGraphSummary::IsAlike(const CudaGraphSummary& other) const {
  const auto bare = [](const std::string& skip) { return WithoutNode(skip); };
  std::vector<std::string> own, others;
  std::transform(skips.begin(), skips.end(), std::back_inserter(own), bare);
  std::transform(other.skips.begin(), other.skips.end(), std::back_inserter(others), bare);
  std::sort(own.begin(), own.end());
  std::sort(others.begin(), others.end());
  return forward == other.forward && backward == other.backward && own == others;
}

std::string CudaGraphText(const CudaGraphSummary& graphs) {
  std::string text;
  const auto add = [&](std::string_view part) {
    text += text.empty() ? "" : ", ";
    text += part;
  };
  if (graphs.forward > 0) add(fmt::format("{} of the forward", graphs.forward));
  if (graphs.backward > 0) add(fmt::format("{} of the backward", graphs.backward));
  if (!text.empty()) text += " recorded";
  for (const std::string& skip : graphs.skips) add("none: " + skip);
  return text.empty() ? "none in the log" : text;
}

Result<std::map<std::int64_t, CudaGraphSummary>> LoadRecordedCudaGraphs(Database& database,
                                                                        std::int64_t process_id) {
  std::map<std::int64_t, CudaGraphSummary> graphs;
  FOR_EACH_ROW(const CudaGraphOfProcess& row,
               Query<CudaGraphOfProcess>(database, {.process_id = process_id})) {
    CudaGraphSummary& of_compile = graphs[row.compile_id];
    (row.is_backward ? of_compile.backward : of_compile.forward) += row.recordings;
  }
  return graphs;
}

Result<std::vector<std::string>> LoadCudaGraphSkips(Database& database, std::int64_t compile_id) {
  std::vector<std::string> skips;
  FOR_EACH_ROW(const SkipOfCompile& row,
               KeptQuery<SkipOfCompile>(database, {.compile_id = compile_id})) {
    const CudaGraphSkip skip = ReadCudaGraphSkip(row.reason);
    std::string text = skip.reason;
    if (!skip.file.empty()) text += fmt::format(" at {}:{}", skip.file, skip.line);
    skips.push_back(std::move(text));
  }
  return skips;
}

}  // namespace tlparse
