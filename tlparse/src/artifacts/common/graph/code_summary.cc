#include "artifacts/common/graph/code_summary.h"

#include <array>
#include <charconv>
#include <unordered_map>

#include "artifacts/common/graph/code_tensors.h"
#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "log/inductor_texts.h"

namespace tlparse {

namespace {

// The identifier at the start of `text`, with dots if `is_dotted`.
std::string_view LeadingName(std::string_view text, bool is_dotted = false) {
  std::size_t end = 0;
  while (end < text.size() && (IsNameCharacter(text[end]) || (is_dotted && text[end] == '.')))
    ++end;
  return text.substr(0, end);
}

// What a summary may take, and what a kernel or collective of it takes until it is in rows.
constexpr std::size_t kMostSummaryBytes = std::size_t{64} << 20;
constexpr std::size_t kBytesOfKernel = 700;

bool IsCollective(std::string_view op) {
  for (const std::string_view prefix : inductor::kCollectiveOps) {
    if (op.starts_with(prefix)) return true;
  }
  return false;
}

// Reads a code text line by line. Kernel sources are in triple-quoted strings and are skipped.
class Summarizer {
 public:
  explicit Summarizer(std::string_view code) : code_(code) {
    has_collectives_ = code.find("torch.ops._c10d_functional") != std::string_view::npos ||
                       code.find("torch.ops.c10d") != std::string_view::npos ||
                       code.find("torch.ops.symm_mem.") != std::string_view::npos;
  }

  CodeSummary Run() {
    summary_.aot_id = AotIdOf(code_);
    std::string_view rest = code_;
    while (!rest.empty()) {
      const std::string_view whole_line = NextLine(rest);
      ++line_;
      const std::size_t first = whole_line.find_first_not_of(" \t");
      if (first == std::string_view::npos) continue;
      const std::string_view line = TrimEnd(whole_line.substr(first));
      if (line.empty()) continue;
      if (line[0] == '#') {
        Comment(line.substr(1));
      } else if (line.starts_with("//")) {
        Comment(line.substr(2));
      } else {
        block_ = Block::kNone;
        if (Definition(line)) {
          SkipString(whole_line, rest);
        } else {
          Statement(line);
        }
      }
    }
    AddUncalled();
    return std::move(summary_);
  }

 private:
  enum class Block { kNone, kMapping, kFragment };
  struct Defined {
    std::string_view name;
    std::vector<std::string> source_nodes;
    std::vector<std::string> post_grad_nodes;
    bool is_called = false;
  };

  void Comment(std::string_view text) {
    if (block_ != Block::kNone && text.starts_with("   ")) {
      BlockLine(text.substr(3));
      return;
    }
    block_ = Block::kNone;
    if (text.starts_with(inductor::kHandles)) {
      CodeKernel kernel;
      const auto [name, handle] = SplitDebugHandle(TrimEnd(text.substr(inductor::kHandles.size())));
      kernel.name = name;
      kernel.handle = handle;
      AddKernel(std::move(kernel));
      is_awaiting_call_ = true;
    } else if (text.starts_with(inductor::kNodeMapping)) {
      block_ = Block::kMapping;
    } else if (text.starts_with(inductor::kGraphFragment)) {
      block_ = Block::kFragment;
    } else if (const std::size_t nodes = text.substr(0, 64).find(inductor::kSourceNodes);
               nodes != std::string_view::npos) {
      source_nodes_.clear();
      for (const std::string_view name :
           SplitArguments(text.substr(nodes + inductor::kSourceNodes.size()))) {
        if (Spend(name.size())) source_nodes_.emplace_back(name);
      }
    }
  }

  void BlockLine(std::string_view text) {
    if (block_ == Block::kMapping) {  // "h => add_2, mul_1"
      const std::size_t arrow = text.find(" => ");
      if (arrow == std::string_view::npos) return;
      for (const std::string_view post : SplitArguments(text.substr(arrow + 4))) {
        if (Spend(arrow + post.size()))
          summary_.node_mapping.emplace_back(text.substr(0, arrow), post);
      }
    } else if (text.starts_with("%")) {  // "%add : [num_users=1] = call_function[target=…](…)";
                                         // placeholders are no nodes of a kernel
      if (text.find("] = call_") == std::string_view::npos &&
          text.find(" = call_") == std::string_view::npos)
        return;
      const std::string_view name = LeadingName(text.substr(1));
      if (Spend(name.size())) post_grad_nodes_.emplace_back(name);
    }
  }

  // "name = async_compile.triton('name', '''": what the comments above tell belongs to the kernel.
  bool Definition(std::string_view line) {
    const std::string_view name = LeadingName(line);
    if (name.empty() || !line.substr(name.size()).starts_with(inductor::kDefinition)) return false;
    if (!Spend(kBytesOfKernel)) return true;
    Defined& defined = Define(name);
    defined.source_nodes = std::move(source_nodes_);
    defined.post_grad_nodes = std::move(post_grad_nodes_);
    source_nodes_.clear();
    post_grad_nodes_.clear();
    return true;
  }

  Defined& Define(std::string_view name) {
    const auto [entry, is_new] = definition_.try_emplace(name, definitions_.size());
    if (is_new) definitions_.push_back({name, {}, {}, false});
    return definitions_[entry->second];
  }

  // Moves `rest` behind the triple-quoted string that `line`, the line above it, opens.
  void SkipString(std::string_view line, std::string_view& rest) {
    constexpr std::string_view kQuotes = "'''";
    const std::size_t open = line.find(kQuotes);
    if (open == std::string_view::npos || line.find(kQuotes, open + 3) != std::string_view::npos)
      return;
    const std::size_t close = rest.find(kQuotes);
    if (close == std::string_view::npos) return;
    std::string_view skipped = rest.substr(0, close);
    while (!skipped.empty()) {
      const std::size_t newline = skipped.find('\n');
      if (newline == std::string_view::npos) break;
      ++line_;
      skipped.remove_prefix(newline + 1);
    }
    // What follows the quotes on their line: device_str='cuda')
    NextLine(rest = rest.substr(close));
    ++line_;
  }

  void Statement(std::string_view line) {
    // Is between the comment and the call, and names the kernel too.
    if (line.starts_with("RAIIAtenRecordFunctionHandle ")) return;
    // "with torch._C._profiler._RecordFunctionFast(…):". A recorder in a kernel's own source, which
    // cpp.enable_kernel_profile adds, wraps no call.
    if (line.starts_with("with ") && (line.find("RecordFunction") != std::string_view::npos ||
                                      line.find("record_function(") != std::string_view::npos))
      summary_.has_wrapped_calls = true;
    // "buf2 = torch.ops.…(…)": the call is what counts.
    std::string_view call = line;
    const std::string_view target = LeadingName(line);
    if (!target.empty() && line.substr(target.size()).starts_with(" = "))
      call = line.substr(target.size() + 3);
    const std::string_view name = KernelName(call);
    if (has_collectives_) {
      if (IsCollective(name)) {
        Collective(name, call.substr(name.size() + 1));
      } else {
        tensors_.Note(line);
      }
    }
    if (is_awaiting_call_ && !summary_.is_cut) {
      CodeKernel& kernel = summary_.kernels.back();
      if (line.find(kernel.name) != std::string_view::npos) {
        kernel.line = line_;
        is_awaiting_call_ = false;
        return;
      }
      if (name.empty()) return;
      is_awaiting_call_ = false;  // another kernel's call: the awaited one is not to be found
    }
    if (!name.empty()) {
      CodeKernel kernel;
      kernel.name = name;
      kernel.line = line_;
      AddKernel(std::move(kernel));
    } else if (!line.starts_with("stream") && !line.starts_with("raw_stream") &&
               !line.starts_with("with ") && !line.starts_with("torch.cuda.")) {
      source_nodes_.clear();  // the comment was about something that is no kernel
    }
  }

  void AddKernel(CodeKernel kernel) {
    if (!Spend(kBytesOfKernel + kernel.name.size())) return;
    kernel.source_nodes = std::move(source_nodes_);
    source_nodes_.clear();
    if (const auto found = definition_.find(kernel.name); found != definition_.end()) {
      Defined& defined = definitions_[found->second];
      if (kernel.source_nodes.empty() && !defined.is_called)
        kernel.source_nodes = defined.source_nodes;
      if (!defined.is_called) kernel.post_grad_nodes = defined.post_grad_nodes;
      defined.is_called = true;
    }
    summary_.kernels.push_back(std::move(kernel));
  }

  void AddUncalled() {
    for (Defined& defined : definitions_) {
      if (defined.is_called) continue;
      CodeKernel kernel;
      kernel.name = defined.name;
      kernel.source_nodes = std::move(defined.source_nodes);
      kernel.post_grad_nodes = std::move(defined.post_grad_nodes);
      summary_.kernels.push_back(std::move(kernel));
    }
  }

  // The kernel that `call` calls; "" if it is no call of one.
  std::string_view KernelName(std::string_view call) const {
    using inductor::kCallTriton, inductor::kCheck, inductor::kLaunch;
    if (call.starts_with(inductor::kExternKernels) || call.starts_with(inductor::kTorchOps) ||
        call.starts_with(inductor::kAten)) {
      const std::string_view name = LeadingName(call, true);
      return call.substr(name.size()).starts_with("(") ? name : std::string_view();
    }
    if (call.starts_with(kCheck)) {
      const std::string_view name = LeadingName(call.substr(kCheck.size()));
      for (const std::string_view device : {"cpu_", "cuda_", "xpu_", "mps_"}) {
        if (name.starts_with("aoti_torch_") && name.substr(11).starts_with(device)) return name;
      }
      return {};
    }
    if (call.starts_with(kLaunch)) return LeadingName(call.substr(kLaunch.size()));
    const std::string_view name = LeadingName(call);
    if (name.empty()) return {};
    const std::string_view after = call.substr(name.size());
    if (after.starts_with(".run(")) return name;
    if (!after.starts_with("(")) return {};
    if (name.starts_with(kCallTriton)) return name.substr(5);
    return name.starts_with(inductor::kCppFused) || definition_.contains(name) ? name
                                                                               : std::string_view();
  }

  void Collective(std::string_view op, std::string_view arguments) {
    if (!Spend(kBytesOfKernel + op.size() + arguments.size())) return;
    std::size_t length = 0;
    const std::vector<std::string_view> parts = SplitArguments(arguments, &length);
    CodeCollective collective;
    collective.op = op;
    collective.is_wait = op.find("wait_tensor") != std::string_view::npos;
    collective.line = line_;
    if (!parts.empty()) {
      const TensorInfo info = tensors_.Of(parts[0]);
      collective.shape = ShapeJson(info.shape);
      collective.dtype = info.dtype;
    }
    if (parts.size() > 1) {
      const std::string_view inside = arguments.substr(0, length);
      collective.arguments =
          TrimEnd(inside.substr(static_cast<std::size_t>(parts[1].data() - inside.data())));
      const std::string_view last = parts.back();
      if (last.size() >= 2 && (last[0] == '\'' || last[0] == '"'))
        collective.group_name = last.substr(1, last.size() - 2);
    }
    summary_.collectives.push_back(std::move(collective));
  }

  // Counts what is added to the summary; false: it takes too much already.
  bool Spend(std::size_t bytes) {
    spent_bytes_ += bytes + sizeof(std::string);
    if (spent_bytes_ > kMostSummaryBytes) summary_.is_cut = true;
    return !summary_.is_cut;
  }

  std::string_view code_;
  std::int64_t line_ = 0;
  CodeSummary summary_;
  std::size_t spent_bytes_ = 0;
  Block block_ = Block::kNone;
  std::vector<std::string> source_nodes_;  // of the comments above the line being read
  std::vector<std::string> post_grad_nodes_;
  bool is_awaiting_call_ = false;  // of the last kernel
  std::unordered_map<std::string_view, std::size_t> definition_;
  std::vector<Defined> definitions_;
  bool has_collectives_ = false;
  CodeTensors tensors_;
};

}  // namespace

std::size_t CodeSummary::size_bytes() const {
  std::size_t size = sizeof *this;
  for (const CodeKernel& kernel : kernels) {
    size += sizeof kernel + kernel.name.size() +
            48 * (kernel.source_nodes.size() + kernel.post_grad_nodes.size());
  }
  return size + 96 * node_mapping.size() + (sizeof(CodeCollective) + 128) * collectives.size();
}

std::string_view AotIdOf(std::string_view code) {
  constexpr std::string_view kAotId = "# AOT ID: ['";
  const std::size_t at = code.substr(0, 256).find(kAotId);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = code.substr(at + kAotId.size(), 64);
  return rest.substr(0, rest.find('\''));
}

CodeSummary SummarizeCode(std::string_view code) { return Summarizer(code).Run(); }

std::pair<std::string_view, std::optional<std::int64_t>> SplitDebugHandle(std::string_view kernel) {
  const std::size_t colon = kernel.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == kernel.size() || kernel[colon + 1] == '-')
    return {kernel, std::nullopt};
  std::int64_t handle = 0;
  const char* end = kernel.data() + kernel.size();
  const auto [parsed, error] = std::from_chars(kernel.data() + colon + 1, end, handle);
  if (error != std::errc() || parsed != end) return {kernel, std::nullopt};
  return {kernel.substr(0, colon), handle};
}

}  // namespace tlparse
