#include "inputs/torch_logs/vllm.h"

#include <charconv>

#include "base/ascii.h"

namespace tlparse {
namespace {

bool TakeBeginning(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// "(Worker_TP1 pid=5691) ", "(VllmWorker rank=0 pid=78) ".
void TakeProcess(std::string_view& text, VllmLine& line) {
  constexpr std::string_view kPid = " pid=";
  if (!text.starts_with('(')) return;
  const std::size_t end = text.find(") ");
  if (end == text.npos) return;
  const std::size_t at = text.substr(0, end).rfind(kPid);
  if (at == text.npos) return;
  std::int64_t pid = 0;
  const auto [last, error] =
      std::from_chars(text.data() + at + kPid.size(), text.data() + end, pid);
  if (error != std::errc() || last != text.data() + end) return;
  line.process_name = text.substr(1, at - 1);
  line.pid = pid;
  text.remove_prefix(end + 2);
}

// "11-29 13:36:06 "
bool TakeTime(std::string_view& text, VllmLine& line) {
  constexpr std::string_view kShape = "00-00 00:00:00 ";
  if (text.size() < kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == '0' ? !IsDigit(text[i]) : kShape[i] != text[i]) return false;
  }
  line.local_time = text.substr(0, kShape.size() - 1);
  text.remove_prefix(kShape.size());
  return true;
}

// "[base_loader.py:82] ", also without "["; below DEBUG with the path.
bool TakePlace(std::string_view& text, std::string_view& place) {
  TakeBeginning(text, "[");
  const std::size_t end = text.find("] ");
  if (end == text.npos) return false;
  place = text.substr(0, end);
  const std::size_t colon = place.rfind(":");
  if (colon == place.npos || !place.substr(0, colon).ends_with(".py") ||
      colon + 1 == place.size() || place.find_first_not_of("0123456789", colon + 1) != place.npos)
    return false;
  text.remove_prefix(end + 2);
  return true;
}

// A message, by what it begins with; the seconds are the number behind `before`, if it names that.
// A later message wins over one that it begins with.
struct Message {
  VllmStage stage;
  std::string_view begin, before;
};
// vllm/v1/engine/core.py, v1/worker/{gpu,cpu}_model_runner.py, model_executor/model_loader/*_loader.py,
// compilation/{backends,decorators,monitor}.py, model_executor/warmup/kernel_warmup.py, v1/executor/multiproc_executor.py,
// v1/worker/mm_encoder_model_runner.py, entrypoints/launchers/api_server/entry.py.
constexpr Message kMessages[] = {
    {VllmStage::kEngine, "Initializing a V1 LLM engine", ""},
    {VllmStage::kLoad, "Starting to load model ", ""},
    {VllmStage::kMakeModel, "Initializing model took ", "took "},
    {VllmStage::kLoadWeights, "Loading weights took ", "took "},
    {VllmStage::kLoadModel, "Model loading took ", " and "},
    {VllmStage::kBeginWarmUp, "Warming up model for the compilation", ""},
    {VllmStage::kEndWarmUp, "Warming up done.", ""},
    {VllmStage::kDynamo, "Dynamo bytecode transform time: ", "time: "},
    {VllmStage::kCompileGraph, "Compiling a graph for ", " takes "},
    {VllmStage::kLoadGraph, "Directly load the compiled graph(s) for ", "took "},
    {VllmStage::kCompile, "torch.compile took ", "took "},
    {VllmStage::kCompile, "torch.compile takes ", "takes "},
    {VllmStage::kCompileAndRun, "torch.compile and initial profiling/warmup run together took ",
     "took "},
    {VllmStage::kLoadCompiled, "Directly load AOT compilation from path ", ""},
    {VllmStage::kCompileAgain, "Compiling model again due to a load failure from ", ""},
    {VllmStage::kFirstRun, "Initial profiling/warmup run took ", "took "},
    {VllmStage::kWarmUpKernels, "JIT kernel warmup finished in ", " in "},
    {VllmStage::kCapture, "Graph capturing finished in ", " in "},
    {VllmStage::kCaptureEncoder, "Encoder graph capturing finished in ", " in "},
    {VllmStage::kInitEngine, "init engine (profile, create kv cache, warmup model) took ", "took "},
    {VllmStage::kListen, "Starting vLLM server on ", ""},
    {VllmStage::kListen, "Starting vLLM API server ", ""},
    {VllmStage::kFailed, "EngineCore failed to start.", ""},
    {VllmStage::kFailed, "EngineCore encountered a fatal error.", ""},
    {VllmStage::kFailed, "WorkerProc failed to start.", ""},
    {VllmStage::kFailed, "WorkerProc failed.", ""},
    {VllmStage::kFailed, "WorkerProc hit an exception.", ""},
};

// "[backbone] ": which of the compiled models.
std::string_view WithoutTag(std::string_view text) {
  if (!text.starts_with('[')) return text;
  const std::size_t end = text.find("] ");
  return end == text.npos ? text : text.substr(end + 2);
}

std::optional<double> SecondsOf(std::string_view text, std::string_view before) {
  const std::size_t at = text.rfind(before);
  if (at == text.npos) return std::nullopt;
  double seconds = 0;
  const char* const begin = text.data() + at + before.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), seconds);
  if (error != std::errc() || seconds < 0) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!unit.starts_with(" s") && !unit.starts_with('s')) return std::nullopt;
  return seconds;
}

void FindStage(VllmLine& line) {
  const std::string_view text = WithoutTag(line.text);
  for (const Message& message : kMessages) {
    if (!text.starts_with(message.begin)) continue;
    if (!message.before.empty()) {
      line.seconds = SecondsOf(text, message.before);
      if (!line.seconds) return;
    }
    line.stage = message.stage;
    return;
  }
}

}  // namespace

std::optional<VllmLine> ParseVllmLine(std::string_view text) {
  VllmLine line;
  TakeProcess(text, line);
  line.is_error = TakeBeginning(text, "ERROR ");
  bool has_level = line.is_error;
  for (const std::string_view level : {"INFO ", "WARNING ", "DEBUG ", "CRITICAL "})
    has_level = has_level || TakeBeginning(text, level);
  if (!has_level || !TakeTime(text, line) || !TakePlace(text, line.place)) return std::nullopt;
  line.text_as_written = text;
  line.text = Trimmed(text);
  FindStage(line);
  return line;
}

bool VllmTracebacks::Add(const VllmLine& line, std::int64_t number) {
  constexpr std::size_t kMostBytes = 50'000;
  const std::int64_t pid = line.pid.value_or(-1);
  const auto open = of_pid_.find(pid);
  if (line.is_error && line.stage == VllmStage::kFailed) {
    of_pid_[pid] = tracebacks.size();
    tracebacks.push_back({number, std::string(line.place), {}});
    return true;
  }
  if (open == of_pid_.end()) return false;
  VllmTraceback& traceback = tracebacks[open->second];
  if (!line.is_error || line.place != traceback.place) {
    of_pid_.erase(open);
    return false;
  }
  if (traceback.text.size() + line.text_as_written.size() < kMostBytes)
    traceback.text.append(line.text_as_written).append("\n");
  return true;
}

}  // namespace tlparse
