#include "facts/contents/kernel_identity.h"

#include <algorithm>
#include <vector>

#include "artifacts/common/graph/code_tensors.h"
#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "log/inductor_texts.h"
#include "queries/facts/contents/kernel_identity.h"

namespace tlparse {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// s0, s77, u1, ks0
bool IsSymbol(std::string_view name) {
  const std::size_t letters = name.starts_with("ks") ? 2 : 1;
  return name.size() > letters && (name[0] == 's' || name[0] == 'u' || letters == 2) &&
         IsNumber(name.substr(letters));
}

// Symbols are numbered in the order in which a compile meets them: only that they are some counts.
std::string WithoutSymbolNumbers(std::string_view text, bool& has_symbols) {
  std::string result;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && IsWordCharacter(text[end])) ++end;
    const std::string_view word = text.substr(0, std::max<std::size_t>(end, 1));
    const bool is_symbol = IsSymbol(word);
    has_symbols |= is_symbol;
    result += is_symbol ? "s" : word;
    text.remove_prefix(word.size());
  }
  return result;
}

// "triton_poi_fused_add_0" → "fused_add", "cpp_fused_add_2" → "fused_add"; other names stay, without
// a number at their end. Empty: the name tells nothing.
std::string_view OperationsOf(std::string_view kernel) {
  const bool is_generated = kernel.starts_with("triton_") || kernel.starts_with("cpp_");
  if (const std::size_t fused = kernel.find("fused_"); is_generated && fused != kernel.npos)
    kernel.remove_prefix(fused);
  const std::size_t number = kernel.rfind('_');
  if (number != kernel.npos && IsNumber(kernel.substr(number + 1)))
    kernel = kernel.substr(0, number);
  return kernel == "triton" || kernel == "cpp" || kernel == "kernel" || kernel == "fused"
             ? std::string_view()
             : kernel;
}

bool IsLiteral(std::string_view text) {
  return text.find_first_not_of("0123456789.-+e") == text.npos || text == "None" ||
         text == "True" || text == "False" || text.starts_with('[') || text.starts_with('(') ||
         text.starts_with('\'') || text.starts_with('"') || text.starts_with("torch.") ||
         text.starts_with("float(");
}

// "s77", "8*s77", "triton_poi_fused_0_xnumel": a size that is known in the call only.
bool IsSymbolicSize(std::string_view text) {
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size() && IsWordCharacter(text[end])) ++end;
    const std::string_view word = text.substr(0, end);
    const bool is_size = word.empty() ? std::string_view("*+-/() ").find(text[0]) != text.npos
                                      : IsNumber(word) || IsSymbol(word) || word.ends_with("numel");
    if (!is_size) return false;
    text.remove_prefix(std::max<std::size_t>(end, 1));
  }
  return true;
}

// Without what the caller names: "alpha=1" → "alpha", "1".
std::pair<std::string_view, std::string_view> SplitKeyword(std::string_view argument) {
  std::size_t end = 0;
  while (end < argument.size() && IsWordCharacter(argument[end])) ++end;
  if (end == 0 || end + 1 >= argument.size() || argument[end] != '=' || argument[end + 1] == '=')
    return {std::string_view(), argument};
  return {argument.substr(0, end), argument.substr(end + 1)};
}

// The lines of a wrapper with their numbers; sources of kernels, in triple quotes, are left out.
template <typename Visit>
void ForEachWrapperLine(std::string_view code, Visit&& visit) {
  std::string_view open;
  for (std::int64_t number = 1; !code.empty(); ++number) {
    const std::string_view line = NextLine(code);
    const bool was_inside = !open.empty();
    std::size_t at = 0;
    while (at < line.size()) {
      if (!open.empty()) {
        at = line.find(open, at);
        if (at == line.npos) break;
        open = {};
        at += 3;
        continue;
      }
      const std::size_t quotes = std::min(line.find("'''", at), line.find("\"\"\"", at));
      if (quotes == line.npos) break;
      open = line[quotes] == '\'' ? "'''" : "\"\"\"";
      at = quotes + 3;
    }
    const std::size_t first = line.find_first_not_of(" \t");
    if (was_inside || first == line.npos || line[first] == '#') continue;
    visit(number, TrimEnd(line.substr(first)));
  }
}

}  // namespace

KernelIdentity IdentityOf(std::string_view kernel, std::string_view line,
                          const CodeTensors& shapes) {
  KernelIdentity identity;
  const std::string_view operations = OperationsOf(kernel);
  const std::size_t call = line.find(kernel);
  if (operations.empty() || call == line.npos) return identity;
  const std::size_t open = line.find('(', call + kernel.size());
  if (open == line.npos) return identity;
  std::vector<std::string> arguments;
  bool has_shape = false;
  for (const std::string_view argument : SplitArguments(line.substr(open + 1))) {
    const auto [keyword, value] = SplitKeyword(argument);
    if (keyword == "stream" || keyword == "grid" || value.starts_with("stream")) continue;
    const TensorInfo info = shapes.Of(value);
    if (!info.shape.empty()) {
      // Inputs of a graph have no type in the code: only buffers do.
      const std::string shape = WithoutSymbolNumbers(ShapeJson(info.shape), identity.has_symbols);
      arguments.push_back(info.dtype.empty() ? shape : shape + " " + std::string(info.dtype));
      has_shape = true;
    } else if (IsLiteral(value)) {
      arguments.push_back(WithoutSymbolNumbers(argument, identity.has_symbols));
    } else if (IsSymbolicSize(value)) {
      arguments.push_back("s");
      identity.has_symbols = true;
    } else {
      return {};
    }
  }
  if (!has_shape) return {};
  // The order of a generated kernel's arguments means nothing; that of an operator's does.
  if (operations.starts_with("fused_")) std::sort(arguments.begin(), arguments.end());
  identity.text = std::string(operations) + " (";
  for (std::size_t i = 0; i < arguments.size(); ++i)
    identity.text += (i == 0 ? "" : ", ") + arguments[i];
  identity.text += ')';
  return identity;
}

Result<GraphKernels> LoadGraphKernels(Database& database, std::int64_t graph_id) {
  GraphKernels graph;
  ASSIGN_OR_RETURN(const FirstRow<GraphOfKernels> facts,
                   First(Query<GraphOfKernels>(database, {.graph_id = graph_id})));
  if (!facts) return graph;
  graph.compile_id = facts->compile_id;
  graph.direction = std::string(facts->direction);
  graph.slot = facts->slot;
  graph.code_hash = std::string(facts->code_hash);
  const std::string code(facts->code);
  std::multimap<std::int64_t, std::pair<std::int64_t, std::string>> by_line;
  FOR_EACH_ROW(const KernelInCode& row, Query<KernelInCode>(database, {.graph_id = graph_id})) {
    by_line.emplace(row.code_line, std::pair(row.id, std::string(row.name)));
    graph.kernels.try_emplace(row.id);
  }
  CodeTensors shapes;
  ForEachWrapperLine(code, [&](std::int64_t number, std::string_view line) {
    const auto [first, last] = by_line.equal_range(number);
    for (auto kernel = first; kernel != last; ++kernel)
      graph.kernels[kernel->second.first] = IdentityOf(kernel->second.second, line, shapes);
    shapes.Note(line);
  });
  return graph;
}

}  // namespace tlparse
