#include "inputs/recognize.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/input.h"
#include "base/json_string.h"
#include "inputs/common/pickle_reader.h"
#include "inputs/debug_server/text.h"
#include "inputs/nccl_ras/report.h"
#include "inputs/torch_logs/collected_line.h"
#include "inputs/torch_logs/tracebacks.h"
#include "inputs/torch_logs/vllm.h"
#include "inputs/torch_logs/watchdog.h"
#include "log/find_logs.h"

namespace tlparse {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What the members of a JSON object are, as far as the head goes.
struct ObjectHead {
  std::vector<std::string_view> keys;        // of the object itself
  std::vector<std::string_view> inner_keys;  // of its members that are objects
  bool Has(std::string_view key) const {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }
  bool HasInner(std::string_view key) const {
    return std::find(inner_keys.begin(), inner_keys.end(), key) != inner_keys.end();
  }
};

// `text` begins behind white space with '{'.
ObjectHead ReadObjectHead(std::string_view text) {
  ObjectHead head;
  int depth = 0;
  bool is_key = false;  // the next string is a key, if it is in an object
  std::string in_array(1, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const char* const begin = text.data() + i + 1;
      const char* const end = EndOfJsonString(begin, text.data() + text.size());
      if (end == nullptr) break;
      const std::string_view key(begin, static_cast<std::size_t>(end - begin) - 1);
      if (is_key && depth == 1) head.keys.push_back(key);
      if (is_key && depth == 2) head.inner_keys.push_back(key);
      is_key = false;
      i += key.size() + 1;
    } else if (c == '{' || c == '[') {
      ++depth;
      in_array.push_back(c == '[' ? 1 : 0);
      is_key = c == '{';
    } else if (c == '}' || c == ']') {
      if (--depth <= 0) break;
      in_array.pop_back();
      is_key = false;
    } else if (c == ',') {
      is_key = in_array.back() == 0;
    }
  }
  return head;
}

// Names of members that only snapshots of the allocator have, whatever their order.
bool IsMemorySnapshot(std::string_view head) {
  return Contains(head, "device_traces") ||
         (Contains(head, "total_size") && Contains(head, "segment_type"));
}

InputKind RecognizeObject(std::string_view text) {
  const ObjectHead head = ReadObjectHead(text);
  if (head.Has("event_type") && (head.Has("payload") || head.Has("pid") || head.Has("name")))
    return InputKind::kTritonparse;
  if (head.Has("command") && head.Has("directory") && head.Has("started_us"))
    return InputKind::kRunFile;
  if (head.Has("communicators") && head.Has("nccl_version")) return InputKind::kNcclRas;
  if (head.Has("device_traces") || (head.Has("segments") && IsMemorySnapshot(text)))
    return InputKind::kMemorySnapshot;
  if (head.Has("pg_config") || head.Has("pg_status")) return InputKind::kRecorderDump;
  if (head.Has("schema") && Contains(text.substr(0, 512), "chakra"))
    return InputKind::kExecutionTrace;
  for (const std::string_view key :
       {"traceEvents", "schemaVersion", "baseTimeNanoseconds", "deviceProperties"}) {
    if (head.Has(key)) return InputKind::kProfile;
  }
  // Members of a recorder dump, any of which may be damaged.
  int known = 0;
  for (const std::string_view key :
       {"version", "entries", "comm_lib_version", "nccl_version", "nccl_comm_state"})
    known += head.Has(key) ? 1 : 0;
  if (known >= 2) return InputKind::kRecorderDump;
  // A large JSON dump names its groups behind its entries.
  if (head.Has("entries") && Contains(text, "\"profiling_name\"")) return InputKind::kRecorderDump;
  const bool has_handles =
      !head.keys.empty() &&
      std::all_of(head.keys.begin(), head.keys.end(), [](std::string_view key) {
        const std::size_t colon = key.rfind(':');
        return colon != key.npos && colon + 1 < key.size() &&
               key.find_first_not_of("0123456789", colon + 1) == key.npos;
      });
  if (has_handles && (head.HasInner("stack_traces") || head.HasInner("post_grad_nodes")))
    return InputKind::kKernelInformation;
  return InputKind::kUnknown;
}

bool HasTraceLine(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (IsTraceHeaderLine(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

// A line of TORCH_LOGS: header of glog, then "[__artifact]" behind brackets; or the warning at the
// recompile limit; or one of NCCL's watchdog; or what a rank or torchrun prints of a failure, or vLLM of its
// start.
bool HasTorchLogsLine(std::string_view text) {
  LineUnwrapper unwrapper;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = unwrapper.Unwrap(text.substr(0, end)).text;
    if (BeginsFailureText(line)) return true;
    if (line.starts_with("[rank")) line.remove_prefix(std::min(line.find("]:") + 2, line.size()));
    if (Contains(line, "torch._dynamo hit config.") || BeginsWatchdogLine(line)) return true;
    if (ParseWatchdogLine(line)) return true;
    if (const std::optional<VllmLine> vllm = ParseVllmLine(line); vllm && vllm->stage) return true;
    if (line.starts_with("[20") && Contains(line, ".__") && Contains(line, ": [DEBUG] "))
      return true;  // PyTorch 2.0 to 2.2
    const std::size_t bracket = line.find("] [");
    if (line.size() > 22 && std::string_view("VIWECD").find(line[0]) != line.npos &&
        bracket != line.npos && Contains(line.substr(bracket), "[__")) {
      return true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

std::string_view Describe(InputKind kind) {
  switch (kind) {
    case InputKind::kLog:
      return "a structured trace";
    case InputKind::kProfile:
      return "a profile";
    case InputKind::kRecorderDump:
      return "a flight-recorder dump";
    case InputKind::kMemorySnapshot:
      return "a memory snapshot";
    case InputKind::kKernelInformation:
      return "a kernel_information.json";
    case InputKind::kPackage:
      return "an AOTInductor package";
    case InputKind::kNsys:
      return "an nsys export";
    case InputKind::kTritonparse:
      return "a tritonparse log";
    case InputKind::kTorchLogs:
      return "text of TORCH_LOGS";
    case InputKind::kRunFile:
      return "a run.json of tlparse run";
    case InputKind::kNcclRas:
      return "a report of NCCL's RAS";
    case InputKind::kDebugServer:
      return "stacks by the debug server of torch.distributed";
    case InputKind::kExecutionTrace:
      return "a Chakra execution trace";
    case InputKind::kOwnDatabase:
      return "a database of tlparse";
    case InputKind::kUnknown:
      break;
  }
  return "of no known kind";
}

InputKind Recognize(std::string_view head) {
  if (head.starts_with("SQLite format 3")) {
    constexpr std::size_t kApplicationIdAt = 68;
    if (head.size() > 72 && head.substr(kApplicationIdAt, 4) == "TLPR")
      return InputKind::kOwnDatabase;
    return Contains(head, "META_DATA_EXPORT") ? InputKind::kNsys : InputKind::kUnknown;
  }
  if (head.starts_with("PK\x03\x04")) return InputKind::kPackage;
  if (LooksLikePickle(head)) {
    if (IsMemorySnapshot(head)) return InputKind::kMemorySnapshot;
    return Contains(head, "entries") || Contains(head, "pg_config") || Contains(head, "pg_status")
               ? InputKind::kRecorderDump
               : InputKind::kUnknown;
  }
  std::string_view text = head;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  if (text.starts_with('{')) {
    const InputKind kind = RecognizeObject(text);
    if (kind != InputKind::kUnknown) return kind;
  }
  if (HasTraceLine(head)) return InputKind::kLog;
  if (BeginsRasText(head)) return InputKind::kNcclRas;
  if (HasDebugServerHead(head)) return InputKind::kDebugServer;
  // A Chrome trace may be the bare list of its events.
  if (text.starts_with('[') && Contains(text, "\"ph\"") && Contains(text, "\"cat\""))
    return InputKind::kProfile;
  // torch.cuda.memory_snapshot(): the list of segments.
  if (text.starts_with('[') && Contains(text, "\"total_size\"") && IsMemorySnapshot(text))
    return InputKind::kMemorySnapshot;
  return HasTorchLogsLine(head) ? InputKind::kTorchLogs : InputKind::kUnknown;
}

namespace {

// What a long job prints at its end, as the watchdog does.
InputKind RecognizeEnd(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kRecognizeBytes, '\0');
  file.seekg(-static_cast<std::streamoff>(bytes.size()), std::ios::end);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return HasTorchLogsLine(bytes) || EndsWithTraceback(bytes) ? InputKind::kTorchLogs
                                                             : InputKind::kUnknown;
}

}  // namespace

Result<InputKind> RecognizeFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputStream> input, OpenInput(path));
  std::string bytes(kRecognizeBytes, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const Result<std::size_t> count = input->Read(bytes.data() + size, bytes.size() - size);
    if (!count || *count == 0) break;
    size += *count;
  }
  const InputKind kind = Recognize(std::string_view(bytes.data(), size));
  // A NUL alone may be in a text (torch/csrc/DataLoader.cpp).
  const bool is_text = std::string_view(bytes.data(), size).find(std::string_view("\0\0", 2)) ==
                       std::string_view::npos;
  if (kind != InputKind::kUnknown || !is_text) return kind;
  if (size == bytes.size()) return RecognizeEnd(path);
  return EndsWithTraceback(std::string_view(bytes.data(), size)) ? InputKind::kTorchLogs : kind;
}

}  // namespace tlparse
