#include "inputs/join/buffer_kernels.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "queries/inputs/join/compiled_code.h"
#include "queries/inputs/join/memory_join.h"

namespace tlparse {
namespace {

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

// Which lines allocate, in the order in which the code runs: `call` and the functions that it calls.
class CodeOrder {
 public:
  void Read(std::string_view line) {
    const std::size_t indent = line.find_first_not_of(" \t");
    if (indent == line.npos || line[indent] == '#') return;
    const std::string_view statement = line.substr(indent);
    constexpr std::string_view kFunctionBegin = "def ";
    if (statement.starts_with(kFunctionBegin)) {
      const std::string_view name = statement.substr(kFunctionBegin.size());
      function_ = &functions_[name.substr(0, name.find('('))];
      *function_ = {};
    } else if (indent == 0) {
      function_ = nullptr;
      ReadPartitions(line);
    } else if (function_ != nullptr) {
      for (const std::string_view word : {"if ", "elif ", "else:", "for ", "while "})
        function_->has_branches |= statement.starts_with(word);
      ReadCalls(statement);
    }
  }
  // The line that was read.
  void Allocates(const BufferLine& line) {
    if (function_ != nullptr) function_->steps.push_back({line, {}});
  }
  // None if it has branches.
  std::vector<BufferLine> Lines() {
    std::vector<BufferLine> lines;
    if (!Run("call", lines)) lines.clear();
    return lines;
  }

 private:
  struct Step {
    BufferLine line;          // that allocates, if there is no callee
    std::string_view callee;  // a function, or "[1]": a partition
  };
  struct Function {
    std::vector<Step> steps;
    bool has_branches = false;
    bool is_running = false;
  };

  // "runner = Runner(partitions=[partition_0, partition_1])".
  void ReadPartitions(std::string_view line) {
    constexpr std::string_view kBegin = "partitions=[";
    const std::size_t begin = line.find(kBegin);
    if (begin == line.npos) return;
    line = line.substr(begin + kBegin.size());
    line = line.substr(0, line.find(']'));
    for (std::size_t at = 0; (at = line.find_first_not_of(", ", at)) != line.npos;) {
      const std::size_t end = std::min(line.find_first_of(", ", at), line.size());
      partitions_["[" + std::to_string(partitions_.size()) + "]"] = line.substr(at, end - at);
      at = end;
    }
  }
  // "repeated_subgraph0(repeated_subgraph0_args)", "self.partitions[1](partition1_args)".
  void ReadCalls(std::string_view statement) {
    constexpr std::string_view kPartitions = "self.partitions";
    for (std::size_t at = 0; (at = statement.find('(', at)) != statement.npos; ++at) {
      std::size_t begin = at;
      while (begin > 0 && IsWordCharacter(statement[begin - 1])) --begin;
      if (begin == at && at > 0 && statement[at - 1] == ']') {
        begin = std::min(statement.rfind('[', at), at);
        if (!statement.substr(0, begin).ends_with(kPartitions)) continue;
      } else if (begin > 0 && statement[begin - 1] == '.') {
        continue;
      }
      if (begin < at) function_->steps.push_back({{}, statement.substr(begin, at - begin)});
    }
  }
  bool Run(std::string_view name, std::vector<BufferLine>& lines) {
    constexpr std::size_t kMostLines = 1'000'000;
    if (const auto partition = partitions_.find(name); partition != partitions_.end())
      name = partition->second;
    const auto found = functions_.find(name);
    if (found == functions_.end()) return true;  // it is not of this code
    Function& function = found->second;
    if (function.is_running || function.has_branches || lines.size() > kMostLines) return false;
    function.is_running = true;
    for (const Step& step : function.steps) {
      if (step.callee.empty())
        lines.push_back(step.line);
      else if (!Run(step.callee, lines))
        return false;
    }
    function.is_running = false;
    return true;
  }

  std::map<std::string_view, Function> functions_;
  std::map<std::string, std::string_view, std::less<>> partitions_;
  Function* function_ = nullptr;  // of the line; nullptr: none
};

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
    order.Read(line);
    if (const std::string_view name = AllocatedBuffer(line); !name.empty() && line[0] == ' ') {
      unused_[name] = number;
      order.Allocates({number, AllocatedBytes(line), line.find("empty_strided_cpu(") != line.npos});
    }
  }

  std::map<std::int64_t, std::int64_t> kernels;  // by line that allocates
  CodeOrder order;

 private:
  const std::map<std::int64_t, std::int64_t>& calls_;
  std::map<std::string_view, std::int64_t> unused_;  // line by buffer
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
  code.lines = reader.order.Lines();
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
