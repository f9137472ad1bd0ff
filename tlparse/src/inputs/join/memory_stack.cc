#include "inputs/join/memory_stack.h"

#include <limits>

#include "queries/inputs/join/memory_join.h"

namespace tlparse {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What PyTorch was doing, by one of its frames; kUnknown: the frame does not say it.
MemoryCategory CategoryOf(std::string_view file, std::string_view function) {
  if (Has(file, "/torch/optim/")) return MemoryCategory::kOptimizer;
  if (Has(file, "/torch/nn/parameter.py") || Has(file, "/torch/serialization.py"))
    return MemoryCategory::kParameter;
  if (Has(file, "/torch/nn/modules/")) {
    if (function == "__init__" || function == "_apply" || function == "convert" ||
        function == "reset_parameters")
      return MemoryCategory::kParameter;
    return MemoryCategory::kForward;
  }
  if (function == "_engine_run_backward" || function.starts_with("torch::autograd::Engine::"))
    return MemoryCategory::kBackward;
  return MemoryCategory::kUnknown;
}

bool IsLineOfUser(std::string_view file) {
  return file.ends_with(".py") && !IsFrameOfTorch(file) && !IsGeneratedFile(file) &&
         !Has(file, "-packages/torch/");
}

}  // namespace

Result<MemoryStack> ReadMemoryStack(Database& database, std::int64_t stack_id,
                                    const RecorderCode& codes) {
  MemoryStack stack;
  bool has_frames = false;
  FOR_EACH_ROW(const FrameOfSite& frame, KeptQuery<FrameOfSite>(database, {.stack_id = stack_id})) {
    has_frames = true;
    const std::string file(frame.file);
    if (stack.graph_id == 0 && IsGeneratedFile(file)) {
      // Of code that was generated again at the same path the last.
      const RecordedCode* const code = codes.At(file, std::numeric_limits<std::int64_t>::max());
      if (code != nullptr) {
        stack.graph_id = code->graph_id;
        stack.code_line = frame.line;
      } else if (stack.unknown_file.empty()) {
        stack.unknown_file = file;
      }
      if (stack.category == MemoryCategory::kUnknown) stack.category = MemoryCategory::kCompiled;
    }
    if (stack.category == MemoryCategory::kUnknown)
      stack.category = CategoryOf(file, frame.function);
    if (stack.file.empty() && IsLineOfUser(file)) {
      stack.file = file;
      stack.line = frame.line;
      stack.function = frame.function;
    }
  }
  if (has_frames && stack.category == MemoryCategory::kUnknown)
    stack.category = MemoryCategory::kOther;
  return stack;
}

}  // namespace tlparse
