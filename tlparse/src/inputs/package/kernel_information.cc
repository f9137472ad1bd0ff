#include "inputs/package/kernel_information.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <vector>

#include "artifacts/common/text/python_traceback.h"
#include "base/utf8.h"
#include "rows/core.h"
#include "rows/package.h"
#include "rows/provenance.h"
#include "store/hash128.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostStacks = 64;  // of one kernel
constexpr std::size_t kMostFrames = 256;

struct Kernel {
  std::string_view name;
  std::optional<std::int64_t> handle;
  PlainValue facts;
};

// "cpp_fused_gelu_0:2" → name and handle.
Kernel KernelOf(std::string_view key, const PlainValue& facts) {
  Kernel kernel{key, std::nullopt, facts};
  const std::size_t colon = key.rfind(':');
  std::int64_t handle = 0;
  if (colon == key.npos || colon + 1 == key.size()) return kernel;
  const auto [end, error] =
      std::from_chars(key.data() + colon + 1, key.data() + key.size(), handle);
  if (error == std::errc() && end == key.data() + key.size()) {
    kernel.name = key.substr(0, colon);
    kernel.handle = handle;
  }
  return kernel;
}

bool IsMarkLine(std::string_view line) {
  return line.find_first_not_of(" ^~") == std::string_view::npos;
}

struct Stack {
  std::string text;  // without the lines that mark columns (^^^)
  std::int64_t entry_count = 0;
};

std::vector<Stack> DistinctStacks(const PlainValue& entries) {
  std::vector<Stack> stacks;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < std::min(entries.size(), kMostStacks); ++i) {
    const std::optional<std::string_view> entry = entries.At(i).Text();
    if (!entry || !seen.insert(*entry).second) continue;
    std::string text;
    for (std::string_view rest = *entry; !rest.empty();) {
      const std::string_view line = NextLine(rest);
      if (!IsMarkLine(line)) text.append(line).push_back('\n');
    }
    const auto same = std::find_if(stacks.begin(), stacks.end(),
                                   [&](const Stack& stack) { return stack.text == text; });
    if (same != stacks.end()) {
      ++same->entry_count;
    } else {
      stacks.push_back({std::move(text), 1});
    }
  }
  return stacks;
}

// Frames are listed outermost first in the text, each with its code on the next line.
void AddStack(const Stack& stack, std::int64_t kernel_id, std::int64_t stack_ordinal,
              RuntimeContext& context) {
  std::string_view text = stack.text;
  struct Line {
    PythonFrame frame;
    std::string_view code;
  };
  std::vector<Line> lines;
  while (!text.empty() && lines.size() < kMostFrames) {
    const std::string_view line = NextLine(text);
    if (const std::optional<PythonFrame> frame = ParseFrameLine(line)) {
      lines.push_back({*frame, {}});
    } else if (!lines.empty() && lines.back().code.empty()) {
      const std::size_t begin = line.find_first_not_of(' ');
      if (begin != line.npos) lines.back().code = TrimEnd(line.substr(begin));
    }
  }
  std::int64_t ordinal = 0;
  for (const Line& line : lines) {
    KernelSourceRow row{.kernel_id = kernel_id,
                        .stack_ordinal = stack_ordinal,
                        .frame_ordinal = ordinal++,
                        .basis = KernelSourceBasis::kKernelStackTraces,
                        .entry_count = stack.entry_count};
    row.file_id = context.OptionalText(line.frame.file);
    row.line = line.frame.line;
    row.function_id = context.OptionalText(line.frame.function);
    row.code_id = context.OptionalText(line.code);
    context.rows().Add(row);
  }
}

void AddKernel(const Kernel& kernel, std::int64_t content_id, std::int64_t ordinal,
               RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const std::string name = SanitizeUtf8(kernel.name);
  KernelRow row{.id = context.NextId(rows.TableOf<KernelRow>()),
                .content_id = content_id,
                .ordinal = ordinal,
                .name = RowText(name)};
  row.debug_handle = kernel.handle;
  rows.Add(row);
  const std::int64_t kernel_id = row.id.value();
  std::int64_t stack_ordinal = 0;
  for (const Stack& stack : DistinctStacks(kernel.facts["stack_traces"]))
    AddStack(stack, kernel_id, stack_ordinal++, context);
  std::set<std::string> nodes;
  const PlainValue post_grad = kernel.facts["post_grad_nodes"];
  for (std::size_t i = 0; i < post_grad.size(); ++i) {
    if (const std::optional<std::string> node = TextOf(post_grad.At(i))) nodes.insert(*node);
  }
  for (const std::string& node : nodes)
    rows.Add(KernelNodeRow{.kernel_id = kernel_id, .post_grad_node = RowText(node)});
  const std::optional<std::string> semantic_key = TextOf(kernel.facts["extern_semantic_key"]);
  const std::optional<std::string> input_shapes = JsonOf(kernel.facts["input_shapes"]);
  const std::optional<std::string> input_dtypes = JsonOf(kernel.facts["input_dtypes"]);
  const std::optional<std::string> output_shape = JsonOf(kernel.facts["output_shape"]);
  const std::optional<std::string> output_dtype = TextOf(kernel.facts["output_dtype"]);
  const std::optional<std::string> pre_grad = JsonOf(kernel.facts["pre_grad_nodes"]);
  PackageKernelFactRow facts{.kernel_id = kernel_id};
  facts.semantic_key = semantic_key;
  facts.input_shapes = input_shapes;
  facts.input_dtypes = input_dtypes;
  facts.output_shape = output_shape;
  facts.output_dtype = output_dtype;
  facts.pre_grad_nodes = pre_grad;
  rows.Add(facts);
}

}  // namespace

void UseKernelTables(TableSet& tables) {
  tables.Use<ContentRow>();
  tables.Use<KernelRow>();
  tables.Use<KernelNodeRow>();
  tables.Use<KernelSourceRow>();
  tables.Use<PackageKernelFactRow>();
}

Result<std::optional<AddedKernels>> AddKernelInformation(const PlainValue& root,
                                                         RuntimeContext& context) {
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i < root.size(); ++i) {
    const auto [key, facts] = root.Member(i);
    const std::optional<std::string_view> name = key.Text();
    if (name && facts.type() == PlainValue::Type::kDict && !facts.is_cut())
      kernels.push_back(KernelOf(*name, facts));
  }
  if (kernels.empty()) return std::optional<AddedKernels>();
  // Handles number the kernels in the order in which they run.
  std::stable_sort(kernels.begin(), kernels.end(), [](const Kernel& a, const Kernel& b) {
    return a.handle.value_or(INT64_MAX) < b.handle.value_or(INT64_MAX);
  });
  RowBatch& rows = context.rows();
  SequenceHash hash;
  hash.Add("kernel_information");
  hash.Add(context.profile_id());
  for (const Kernel& kernel : kernels) {
    hash.Add(kernel.name);
    hash.Add(kernel.handle.value_or(-1));
  }
  const std::string digest = ToHex(hash.Digest());
  const std::int64_t content_id = context.NextId(rows.TableOf<ContentRow>());
  rows.Add(ContentRow{.id = content_id, .kind = "provenance", .hash = RowText(digest)});
  std::int64_t ordinal = 0;
  for (const Kernel& kernel : kernels) {
    AddKernel(kernel, content_id, ordinal++, context);
    RETURN_IF_ERROR(context.Flush());
  }
  return std::optional(AddedKernels{content_id, static_cast<std::int64_t>(kernels.size())});
}

}  // namespace tlparse
