#include "inputs/join/buffer_kernels.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "queries/inputs/join/compiled_code.h"
#include "queries/inputs/join/memory_join.h"

namespace tlparse {
namespace {

bool IsWordCharacter(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool Uses(std::string_view line, std::string_view name) {
  for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !IsWordCharacter(line[at - 1])) &&
        (end == line.size() || !IsWordCharacter(line[end])))
      return true;
  }
  return false;
}

// The name in front of `assigned`, with which something is assigned to it; empty: there is none.
std::string_view NameBefore(std::string_view line, std::string_view assigned) {
  const std::size_t begin = line.find_first_not_of(" \t");
  const std::size_t equals = line.find(assigned);
  if (begin == line.npos || equals == line.npos || equals <= begin) return {};
  const std::string_view name = line.substr(begin, equals - begin);
  for (const char c : name)
    if (!IsWordCharacter(c)) return {};
  return name;
}

// "buf0" of "    buf0 = empty_strided_cuda((8, 16), (16, 1), torch.float32)"; empty: no allocation.
std::string_view AllocatedBuffer(std::string_view line) {
  return NameBefore(line, " = empty_strided");
}

// "buf1" of "    buf1 = buf0; del buf0  # reuse"; empty: no buffer gets another name.
std::string_view RenamedBuffer(std::string_view line) {
  return line.ends_with("# reuse") ? NameBefore(line, " = ") : std::string_view();
}

}  // namespace

Result<std::optional<std::int64_t>> BufferKernels::At(Database& database, std::int64_t graph_id,
                                                      std::int64_t code_line) {
  const auto [entry, is_new] = graphs_.try_emplace(graph_id);
  KernelsByLine& kernels = entry->second;
  if (is_new) {
    FOR_EACH_ROW(const KernelOfLine& row,
                 KeptQuery<KernelOfLine>(database, {.graph_id = graph_id})) {
      kernels.try_emplace(row.code_line, row.id);
    }
    ASSIGN_OR_RETURN(const FirstRow<CodeTextOfGraph> code,
                     First(Query<CodeTextOfGraph>(database, {.graph_id = graph_id})));
    std::map<std::string_view, std::int64_t> unused;  // line by buffer
    KernelsByLine allocations;
    std::string_view rest = code ? std::string_view(code->content) : std::string_view();
    for (std::int64_t number = 1; !rest.empty(); ++number) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto kernel = kernels.find(number);
      const std::string_view renamed = RenamedBuffer(line);
      const bool is_check = line.find("assert_size_stride") != line.npos;
      std::vector<std::int64_t> renamed_lines;
      for (auto buffer = unused.begin(); !is_check && buffer != unused.end();) {
        const bool is_used = Uses(line, buffer->first);
        if (is_used && !renamed.empty())
          renamed_lines.push_back(buffer->second);
        else if (is_used && kernel != kernels.end())
          allocations[buffer->second] = kernel->second;
        buffer = is_used ? unused.erase(buffer) : std::next(buffer);
      }
      for (const std::int64_t allocated : renamed_lines) unused[renamed] = allocated;
      if (const std::string_view name = AllocatedBuffer(line); !name.empty()) unused[name] = number;
    }
    for (const auto& [line, kernel] : allocations) kernels.try_emplace(line, kernel);
  }
  const auto found = kernels.find(code_line);
  return found == kernels.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tlparse
