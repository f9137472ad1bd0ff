#include "inputs/common/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "inputs/common/pickle_text.h"

namespace tlparse {
namespace {

using NodeId = PlainTree::NodeId;
using Type = PlainValue::Type;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  PlainDocument Read() {
    while (!is_done_ && !problem_) {
      op_at_ = at_;
      if (at_ == bytes_.size()) {
        Cut();
      } else if (tree_.IsFull() || stack_.size() + marks_.size() >= PlainTree::kMostChildren) {
        Stop("the pickle holds more values than are read of one file");
      } else {
        Step(static_cast<unsigned char>(bytes_[at_++]));
      }
    }
    if (problem_) CloseOpen();
    if (!stack_.empty()) tree_.set_root(stack_.front());
    return {std::move(tree_), std::move(problem_)};
  }

 private:
  void Step(unsigned char op);
  bool StepLine(unsigned char op);
  bool StepMemo(unsigned char op);
  bool StepContainer(unsigned char op);
  bool StepNumber(unsigned char op);

  void Stop(std::string message) {
    if (!problem_) problem_ = PlainProblem{std::move(message), static_cast<std::int64_t>(op_at_)};
  }
  // What the opcode at `op_at_` cannot do.
  void StopAt(std::string_view message) {
    const char op = bytes_[op_at_];
    Stop(fmt::format("the pickle is damaged here or before: opcode {}0x{:02x}: {}",
                     op > ' ' && op < '\x7f' ? fmt::format("'{}' ", op) : std::string(),
                     static_cast<unsigned char>(op), message));
  }
  void Cut() {
    // Where the end mark is there, it is a length that is wrong.
    if (op_at_ < bytes_.size() && bytes_.ends_with('.'))
      return StopAt("what follows it would go beyond the end of the file");
    Stop("the pickle ends before its end mark");
    problem_->is_cut = true;
  }
  void Push(NodeId node) { stack_.push_back(node); }

  // The next `size` bytes; empty and a problem if there are fewer.
  std::string_view Take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      Cut();
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += taken.size();
    return taken;
  }
  // A little-endian unsigned number.
  std::uint64_t TakeNumber(std::size_t size) {
    std::uint64_t number = 0;
    const std::string_view bytes = Take(size);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return number;
  }
  // The bytes up to the next line feed, which is taken too.
  std::string_view TakeLine() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) {
      Cut();
      return {};
    }
    const std::string_view line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  // Two's complement, little-endian, of any length.
  NodeId LongNode(std::string_view bytes) {
    if (bytes.empty()) return tree_.NewInt(0);
    const bool is_negative = (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
    std::uint64_t number = is_negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (i >= 8) {
        if (byte != (is_negative ? 0xFF : 0)) return tree_.NewBigInt();
        continue;
      }
      number &= ~(std::uint64_t{0xFF} << (8 * i));
      number |= std::uint64_t{byte} << (8 * i);
    }
    const auto value = static_cast<std::int64_t>(number);
    return (value < 0) == is_negative ? tree_.NewInt(value) : tree_.NewBigInt();
  }
  void PushIntLine(std::string_view line, bool may_be_bool) {
    if (may_be_bool && (line == "00" || line == "01")) return Push(tree_.NewBool(line == "01"));
    if (line.ends_with('L')) line.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (line.empty() || end != line.data() + line.size()) return StopAt("its number is damaged");
    Push(error == std::errc::result_out_of_range ? tree_.NewBigInt() : tree_.NewInt(value));
  }
  void PushRealLine(std::string_view line) {
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (line.empty() || end != line.data() + line.size()) return StopAt("its number is damaged");
    Push(tree_.NewReal(value));
  }

  void PushText(std::uint64_t size) {
    const std::string_view text = Take(size);
    if (!problem_) Push(tree_.NewText(text));
  }
  // The values since the last mark, which goes; nothing and a problem if there is none.
  std::optional<std::size_t> PopMark() {
    if (marks_.empty()) {
      StopAt("the mark that it needs is missing");
      return std::nullopt;
    }
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  // Whether `count` values lie above the last mark.
  bool Needs(std::size_t count) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() >= floor + count) return true;
    StopAt("a value that it needs is missing");
    return false;
  }
  // Moves the values from `from` on into the container below them.
  void Fill(std::size_t from, Type type) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (from <= floor || tree_.TypeOf(stack_[from - 1]) != type)
      return StopAt("values are added to what is no container of theirs");
    if (type == Type::kDict && (stack_.size() - from) % 2 != 0)
      return StopAt("a dict has a key without a value");
    MoveInto(stack_[from - 1], from);
  }
  void MoveInto(NodeId container, std::size_t from) {
    for (std::size_t i = from; i < stack_.size(); ++i) tree_.Append(container, stack_[i]);
    stack_.resize(from);
  }
  void MakeFrom(std::size_t from, Type type) {
    if (type == Type::kDict && (stack_.size() - from) % 2 != 0)
      return StopAt("a dict has a key without a value");
    const NodeId container = tree_.NewContainer(type);
    MoveInto(container, from);
    Push(container);
  }
  // A document that could not be read on: what was begun gets what it has so far.
  void CloseOpen() {
    // A container that was just made has had no chance to be filled.
    if (!stack_.empty() && PlainValue(tree_, stack_.back()).size() == 0 &&
        IsContainer(stack_.back()))
      tree_.MarkCut(stack_.back());
    while (!marks_.empty()) {
      const std::size_t from = marks_.back();
      marks_.pop_back();
      const bool has_owner = from > (marks_.empty() ? 0 : marks_.back());
      if (!has_owner || !IsContainer(stack_[from - 1])) {
        stack_.resize(std::min(stack_.size(), from));  // a tuple of protocol 0 in the making
        continue;
      }
      const NodeId owner = stack_[from - 1];
      if (tree_.TypeOf(owner) == Type::kDict && (stack_.size() - from) % 2 != 0) stack_.pop_back();
      MoveInto(owner, from);
      tree_.MarkCut(owner);
    }
  }
  bool IsContainer(NodeId node) const {
    const Type type = tree_.TypeOf(node);
    return type == Type::kList || type == Type::kDict;
  }

  void Remember(std::uint64_t slot) {
    if (!Needs(1)) return;
    // Writers count from 0, and whatever is remembered took two bytes at least: a slot beyond that
    // would cost memory that the file does not account for.
    if (slot > at_ / 2) return StopAt("its memo slot is out of range");
    if (slot >= memo_.size()) memo_.resize(static_cast<std::size_t>(slot) + 1, kNothing);
    memo_[static_cast<std::size_t>(slot)] = stack_.back();
  }
  void Recall(std::uint64_t slot) {
    if (slot >= memo_.size() || memo_[static_cast<std::size_t>(slot)] == kNothing)
      return StopAt("its memo slot was never written");
    Push(memo_[static_cast<std::size_t>(slot)]);
  }
  std::uint64_t SlotLine() {
    const std::string_view line = TakeLine();
    std::uint64_t slot = 0;
    if (!problem_ && std::from_chars(line.data(), line.data() + line.size(), slot).ptr !=
                         line.data() + line.size())
      StopAt("its memo slot is damaged");
    return slot;
  }

  static constexpr NodeId kNothing = ~NodeId{0};
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t op_at_ = 0;
  bool is_done_ = false;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::vector<NodeId> memo_;
  PlainTree tree_;
  std::optional<PlainProblem> problem_;
};

bool Reader::StepNumber(unsigned char op) {
  switch (op) {
    case 'K':
      Push(tree_.NewInt(static_cast<std::int64_t>(TakeNumber(1))));
      return true;
    case 'M':
      Push(tree_.NewInt(static_cast<std::int64_t>(TakeNumber(2))));
      return true;
    case 'J':
      Push(tree_.NewInt(static_cast<std::int32_t>(TakeNumber(4))));
      return true;
    case 0x8A:  // LONG1
      Push(LongNode(Take(TakeNumber(1))));
      return true;
    case 0x8B:  // LONG4
      Push(LongNode(Take(TakeNumber(4))));
      return true;
    case 'G': {
      std::uint64_t bits = 0;
      for (const char byte : Take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
      Push(tree_.NewReal(std::bit_cast<double>(bits)));
      return true;
    }
    case 'N':
      Push(tree_.NewNull());
      return true;
    case 0x88:
    case 0x89:
      Push(tree_.NewBool(op == 0x88));
      return true;
    default:
      return false;
  }
}

// Protocol 0.
bool Reader::StepLine(unsigned char op) {
  if (op != 'V' && op != 'I' && op != 'L' && op != 'F') return false;
  const std::string_view line = TakeLine();
  if (problem_) return true;
  if (op == 'V') {
    Push(tree_.NewText(DecodeRawUnicodeEscape(line)));
  } else if (op == 'F') {
    PushRealLine(line);
  } else {
    PushIntLine(line, op == 'I');
  }
  return true;
}

bool Reader::StepMemo(unsigned char op) {
  switch (op) {
    case 'q':
      Remember(TakeNumber(1));
      return true;
    case 'r':
      Remember(TakeNumber(4));
      return true;
    case 'p':
      Remember(SlotLine());
      return true;
    case 0x94:  // MEMOIZE
      Remember(memo_.size());
      return true;
    case 'h':
      Recall(TakeNumber(1));
      return true;
    case 'j':
      Recall(TakeNumber(4));
      return true;
    case 'g':
      Recall(SlotLine());
      return true;
    default:
      return false;
  }
}

bool Reader::StepContainer(unsigned char op) {
  switch (op) {
    case '}':
      Push(tree_.NewContainer(Type::kDict));
      return true;
    case ']':
    case ')':
      Push(tree_.NewContainer(Type::kList));
      return true;
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case 'd':
    case 'l':
    case 't':
      if (const std::optional<std::size_t> mark = PopMark())
        MakeFrom(*mark, op == 'd' ? Type::kDict : Type::kList);
      return true;
    case 0x85:  // TUPLE1 … TUPLE3
    case 0x86:
    case 0x87:
      if (Needs(op - 0x84U)) MakeFrom(stack_.size() - (op - 0x84U), Type::kList);
      return true;
    case 'a':
      if (Needs(2)) Fill(stack_.size() - 1, Type::kList);
      return true;
    case 's':
      if (Needs(3)) Fill(stack_.size() - 2, Type::kDict);
      return true;
    case 'e':
    case 'u':
      if (const std::optional<std::size_t> mark = PopMark())
        Fill(*mark, op == 'e' ? Type::kList : Type::kDict);
      return true;
    default:
      return false;
  }
}

void Reader::Step(unsigned char op) {
  if (StepContainer(op) || StepMemo(op) || StepLine(op)) return;
  if (StepNumber(op)) {
    if (problem_) stack_.pop_back();  // its bytes were not all there
    return;
  }
  switch (op) {
    case 'X':
      return PushText(TakeNumber(4));
    case 0x8C:
      return PushText(TakeNumber(1));
    case 0x8D:
      return PushText(TakeNumber(8));
    case 0x80:  // PROTO
      if (const std::uint64_t protocol = TakeNumber(1); !problem_ && protocol > 5)
        StopAt(fmt::format("protocol {} is not known", protocol));
      return;
    case 0x95:  // FRAME: its length is redundant
      Take(8);
      return;
    case '.':
      is_done_ = true;
      if (stack_.size() != 1 || !marks_.empty())
        StopAt("the pickle ends here, but not in one value");
      return;
    default:
      Stop(fmt::format("opcode 0x{:02x} does not build a plain value: nothing was executed", op));
      problem_->is_refused = true;
  }
}

}  // namespace

bool LooksLikePickle(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

PlainDocument ReadPickle(std::string_view bytes) { return Reader(bytes).Read(); }

}  // namespace tlparse
