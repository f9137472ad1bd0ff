// Reads a pickle of plain values, opcode by opcode: dicts, lists, tuples, text, integers, floats,
// booleans and None, as PyTorch's C++ pickler and Python's own write them in protocols 0 to 5. Any
// other opcode ends the reading: nothing is ever executed or imported.
//
// `Source` gives the bytes:
//
//   bool IsAtEnd();
//   std::int64_t at() const;                                 // of the next byte
//   unsigned char Next();                                    // not at the end
//   std::optional<std::string_view> Take(std::uint64_t);     // nothing: there are fewer
//   std::optional<std::string_view> TakeLine();              // without its line feed
//   bool EndsWithStop();                                     // after Take gave nothing: the last byte is STOP
//
// `Values` holds the values (value_stack.h).
#pragma once

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "inputs/common/pickle_text.h"
#include "inputs/common/plain_value.h"
#include "inputs/common/value_stack.h"

namespace tlparse {

template <typename Source, typename Values>
class PickleMachine {
 public:
  using Node = typename Values::Node;
  using Type = PlainValue::Type;

  PickleMachine(Source& source, Values& values)
      : source_(source), values_(values), stack_(values) {}

  // Until STOP or a problem.
  void Run() {
    while (Step()) {
    }
    Finish();
  }
  // One opcode. False: it was the last.
  bool Step() {
    if (is_done_ || problem_) return false;
    op_at_ = source_.at();
    op_ = 0;
    if (source_.IsAtEnd()) {
      Cut();
    } else if (stack_.IsFull()) {
      Stop("the pickle holds more values than are read of one file");
    } else {
      op_ = source_.Next();
      StepOp(op_);
    }
    return !is_done_ && !problem_;
  }
  // What was begun gets what it has so far.
  void Finish() {
    if (problem_) stack_.CloseOpen();
  }
  std::optional<Node> root() const {
    return stack_.size() == 0 ? std::nullopt : std::optional(stack_.bottom());
  }
  std::optional<PlainProblem>& problem() { return problem_; }
  void Stop(std::string message) {
    if (!problem_) problem_ = PlainProblem{std::move(message), op_at_};
  }

 private:
  void StepOp(unsigned char op);
  bool StepLine(unsigned char op);
  bool StepMemo(unsigned char op);
  bool StepContainer(unsigned char op);
  bool StepNumber(unsigned char op);

  // What the latest opcode cannot do.
  void StopAt(std::string_view message) {
    const char op = static_cast<char>(op_);
    Stop(fmt::format("the pickle is damaged here or before: opcode {}0x{:02x}: {}",
                     op > ' ' && op < '\x7f' ? fmt::format("'{}' ", op) : std::string(), op_,
                     message));
  }
  void Cut() {
    // Where the end mark is there, it is a length that is wrong.
    if (op_ != 0 && source_.EndsWithStop())
      return StopAt("what follows it would go beyond the end of the file");
    Stop("the pickle ends before its end mark");
    problem_->is_cut = true;
  }
  void Push(Node node) { stack_.Push(node); }

  // The next `size` bytes; empty and a problem if there are fewer.
  std::string_view Take(std::uint64_t size) {
    const std::optional<std::string_view> taken = source_.Take(size);
    if (!taken) Cut();
    return taken.value_or(std::string_view());
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
    const std::optional<std::string_view> line = source_.TakeLine();
    if (!line) Cut();
    return line.value_or(std::string_view());
  }

  // Two's complement, little-endian, of any length.
  Node LongNode(std::string_view bytes) {
    if (bytes.empty()) return values_.NewInt(0);
    const bool is_negative = (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
    std::uint64_t number = is_negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (i >= 8) {
        if (byte != (is_negative ? 0xFF : 0)) return values_.NewBigInt();
        continue;
      }
      number &= ~(std::uint64_t{0xFF} << (8 * i));
      number |= std::uint64_t{byte} << (8 * i);
    }
    const auto value = static_cast<std::int64_t>(number);
    return (value < 0) == is_negative ? values_.NewInt(value) : values_.NewBigInt();
  }
  void PushIntLine(std::string_view line, bool may_be_bool) {
    if (may_be_bool && (line == "00" || line == "01")) return Push(values_.NewBool(line == "01"));
    if (line.ends_with('L')) line.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (line.empty() || end != line.data() + line.size()) return StopAt("its number is damaged");
    Push(error == std::errc::result_out_of_range ? values_.NewBigInt() : values_.NewInt(value));
  }
  void PushRealLine(std::string_view line) {
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (line.empty() || end != line.data() + line.size()) return StopAt("its number is damaged");
    Push(values_.NewReal(value));
  }

  void PushText(std::uint64_t size) {
    const std::string_view text = Take(size);
    if (!problem_) Push(values_.NewText(text));
  }
  // The values since the last mark, which goes; nothing and a problem if there is none.
  std::optional<std::size_t> PopMark() {
    const std::optional<std::size_t> mark = stack_.PopMark();
    if (!mark) StopAt("the mark that it needs is missing");
    return mark;
  }
  // Whether `count` values lie above the last mark.
  bool Needs(std::size_t count) {
    if (stack_.Has(count)) return true;
    StopAt("a value that it needs is missing");
    return false;
  }
  void Fill(std::size_t from, Type type, bool is_at_once = false) {
    if (const char* const problem = stack_.Fill(from, type, is_at_once)) StopAt(problem);
  }
  void MakeFrom(std::size_t from, Type type) {
    if (const char* const problem = stack_.MakeFrom(from, type)) StopAt(problem);
  }

  void Remember(std::uint64_t slot) {
    if (!Needs(1)) return;
    // Writers count from 0, and whatever is remembered took two bytes at least: a slot beyond that
    // would cost memory that the file does not account for.
    if (slot > static_cast<std::uint64_t>(source_.at()) / 2)
      return StopAt("its memo slot is out of range");
    values_.Remember(static_cast<std::size_t>(slot), stack_.top());
  }
  void Recall(std::uint64_t slot) {
    const std::optional<Node> node = values_.Recall(slot);
    if (!node) return StopAt("its memo slot was never written");
    Push(*node);
  }
  std::uint64_t SlotLine() {
    const std::string_view line = TakeLine();
    std::uint64_t slot = 0;
    if (!problem_ && std::from_chars(line.data(), line.data() + line.size(), slot).ptr !=
                         line.data() + line.size())
      StopAt("its memo slot is damaged");
    return slot;
  }

  Source& source_;
  Values& values_;
  ValueStack<Values> stack_;
  std::int64_t op_at_ = 0;
  unsigned char op_ = 0;
  bool is_done_ = false;
  std::optional<PlainProblem> problem_;
};

template <typename Source, typename Values>
bool PickleMachine<Source, Values>::StepNumber(unsigned char op) {
  switch (op) {
    case 'K':
      Push(values_.NewInt(static_cast<std::int64_t>(TakeNumber(1))));
      return true;
    case 'M':
      Push(values_.NewInt(static_cast<std::int64_t>(TakeNumber(2))));
      return true;
    case 'J':
      Push(values_.NewInt(static_cast<std::int32_t>(TakeNumber(4))));
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
      Push(values_.NewReal(std::bit_cast<double>(bits)));
      return true;
    }
    case 'N':
      Push(values_.NewNull());
      return true;
    case 0x88:
    case 0x89:
      Push(values_.NewBool(op == 0x88));
      return true;
    default:
      return false;
  }
}

// Protocol 0.
template <typename Source, typename Values>
bool PickleMachine<Source, Values>::StepLine(unsigned char op) {
  if (op != 'V' && op != 'I' && op != 'L' && op != 'F') return false;
  const std::string_view line = TakeLine();
  if (problem_) return true;
  if (op == 'V') {
    Push(values_.NewText(DecodeRawUnicodeEscape(line)));
  } else if (op == 'F') {
    PushRealLine(line);
  } else {
    PushIntLine(line, op == 'I');
  }
  return true;
}

template <typename Source, typename Values>
bool PickleMachine<Source, Values>::StepMemo(unsigned char op) {
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
      Remember(values_.remembered());
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

template <typename Source, typename Values>
bool PickleMachine<Source, Values>::StepContainer(unsigned char op) {
  switch (op) {
    case '}':
      Push(values_.NewContainer(Type::kDict));
      return true;
    case ']':
    case ')':
      Push(values_.NewContainer(Type::kList));
      return true;
    case '(':
      stack_.Mark();
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
        Fill(*mark, op == 'e' ? Type::kList : Type::kDict, true);
      return true;
    default:
      return false;
  }
}

template <typename Source, typename Values>
void PickleMachine<Source, Values>::StepOp(unsigned char op) {
  if (StepContainer(op) || StepMemo(op) || StepLine(op)) return;
  if (StepNumber(op)) {
    if (problem_) stack_.Pop();  // its bytes were not all there
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
      if (stack_.size() != 1 || stack_.has_marks())
        StopAt("the pickle ends here, but not in one value");
      return;
    default:
      Stop(fmt::format("opcode 0x{:02x} does not build a plain value: nothing was executed", op));
      problem_->is_refused = true;
  }
}

}  // namespace tlparse
