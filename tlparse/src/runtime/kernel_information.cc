#include "runtime/kernel_information.h"

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

// Frames are listed outermost first in the text, each with its code on the next line.
void AddStack(std::string_view text, std::int64_t kernel_id, std::int64_t stack,
              RuntimeContext& context) {
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
      if (begin != line.npos && line.find_first_not_of(" ^~") != line.npos)
        lines.back().code = TrimEnd(line.substr(begin));
    }
  }
  std::int64_t ordinal = 0;
  for (const Line& line : lines) {
    KernelSourceRow row{.kernel_id = kernel_id,
                        .stack_ordinal = stack,
                        .frame_ordinal = ordinal++,
                        .basis = KernelSourceBasis::kKernelStackTraces};
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
  const PlainValue stacks = kernel.facts["stack_traces"];
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < std::min(stacks.size(), kMostStacks); ++i) {
    const std::optional<std::string_view> text = stacks.At(i).Text();
    if (text && seen.insert(*text).second)
      AddStack(*text, kernel_id, static_cast<std::int64_t>(seen.size()) - 1, context);
  }
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
