#include "inputs/join/buffer_kernels.h"

#include <algorithm>
#include <charconv>
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

// The numbers of "(256, 512)" at the front of `text`, which is passed; nothing: one is no number.
std::optional<std::vector<std::int64_t>> TakeNumbers(std::string_view& text) {
  const std::size_t begin = text.find('('), end = text.find(')');
  if (begin == text.npos || end == text.npos || end < begin) return std::nullopt;
  std::string_view list = text.substr(begin + 1, end - begin - 1);
  text.remove_prefix(end + 1);
  std::vector<std::int64_t> numbers;
  while (!list.empty()) {
    list.remove_prefix(std::min(list.find_first_not_of(", "), list.size()));
    if (list.empty()) break;
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(list.data(), list.data() + list.size(), number);
    list.remove_prefix(static_cast<std::size_t>(rest - list.data()));
    if (error != std::errc() || (!list.empty() && list.front() != ',')) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

// Bytes of "empty_strided_cpu((8, 16), (16, 1), torch.float32)".
std::optional<std::int64_t> AllocatedBytes(std::string_view line) {
  line.remove_prefix(line.find("empty_strided"));
  line.remove_prefix(std::min(line.find('(') + 1, line.size()));
  const auto sizes = TakeNumbers(line), strides = TakeNumbers(line);
  constexpr std::string_view kType = "torch.";
  const std::size_t type = line.find(kType);
  if (!sizes || !strides || sizes->size() != strides->size() || type == line.npos)
    return std::nullopt;
  line.remove_prefix(type + kType.size());
  std::int64_t bits = line.starts_with("bool") ? 8 : 0;
  const std::size_t digits = std::min(line.find_first_of("0123456789"), line.size());
  std::from_chars(line.data() + digits, line.data() + line.size(), bits);
  if (bits < 8) return std::nullopt;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] == 0) return 0;
    elements += ((*sizes)[i] - 1) * (*strides)[i];
  }
  return elements * (bits / 8);
}

// Reads the lines of a graph's code: which allocate, and which kernel is given what they allocate first.
class CodeReader {
 public:
  explicit CodeReader(const std::map<std::int64_t, std::int64_t>& calls) : calls_(calls) {}

  void Read(std::int64_t number, std::string_view line) {
    const auto kernel = calls_.find(number);
    const std::string_view renamed = RenamedBuffer(line);
    const bool is_check = line.find("assert_size_stride") != line.npos;
    std::vector<std::int64_t> renamed_lines;
    for (auto buffer = unused_.begin(); !is_check && buffer != unused_.end();) {
      const bool is_used = Uses(line, buffer->first);
      if (is_used && !renamed.empty())
        renamed_lines.push_back(buffer->second);
      else if (is_used && kernel != calls_.end())
        kernels[buffer->second] = kernel->second;
      buffer = is_used ? unused_.erase(buffer) : std::next(buffer);
    }
    for (const std::int64_t allocated : renamed_lines) unused_[renamed] = allocated;
    functions_ += line.find_first_not_of(" \t") == line.find("def ") ? 1 : 0;
    if (const std::string_view name = AllocatedBuffer(line); !name.empty() && line[0] == ' ') {
      unused_[name] = number;
      is_in_one_ = is_in_one_ && (lines.empty() || functions_ == function_);
      function_ = functions_;
      lines.push_back({number, AllocatedBytes(line), line.find("empty_strided_cpu(") != line.npos});
    }
  }

  std::map<std::int64_t, std::int64_t> kernels;  // by line that allocates
  std::vector<BufferLine> lines;
  bool is_in_one() const { return is_in_one_; }

 private:
  const std::map<std::int64_t, std::int64_t>& calls_;
  std::map<std::string_view, std::int64_t> unused_;  // line by buffer
  int functions_ = 0, function_ = 0;
  bool is_in_one_ = true;
};

}  // namespace

Result<const BufferKernels::Code*> BufferKernels::CodeOf(Database& database,
                                                         std::int64_t graph_id) {
  const auto [entry, is_new] = graphs_.try_emplace(graph_id);
  Code& code = entry->second;
  if (!is_new) return &code;
  FOR_EACH_ROW(const KernelOfLine& row, KeptQuery<KernelOfLine>(database, {.graph_id = graph_id})) {
    code.kernels.try_emplace(row.code_line, row.id);
  }
  ASSIGN_OR_RETURN(const FirstRow<CodeTextOfGraph> text,
                   First(Query<CodeTextOfGraph>(database, {.graph_id = graph_id})));
  CodeReader reader(code.kernels);
  std::string_view rest = text ? std::string_view(text->content) : std::string_view();
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    reader.Read(number, line);
  }
  for (const auto& [line, kernel] : reader.kernels) code.kernels.try_emplace(line, kernel);
  if (reader.is_in_one()) code.lines = std::move(reader.lines);
  return &code;
}

Result<std::optional<std::int64_t>> BufferKernels::At(Database& database, std::int64_t graph_id,
                                                      std::int64_t code_line) {
  ASSIGN_OR_RETURN(const Code* const code, CodeOf(database, graph_id));
  const auto found = code->kernels.find(code_line);
  return found == code->kernels.end() ? std::nullopt : std::optional(found->second);
}

Result<const std::vector<BufferLine>*> BufferKernels::Lines(Database& database,
                                                            std::int64_t graph_id) {
  ASSIGN_OR_RETURN(const Code* const code, CodeOf(database, graph_id));
  return &code->lines;
}

}  // namespace tlparse
