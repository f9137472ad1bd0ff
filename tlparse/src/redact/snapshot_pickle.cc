#include "redact/snapshot_pickle.h"

#include <cstdint>
#include <vector>

#include "inputs/common/pickle_machine.h"
#include "inputs/common/whole_pickle.h"
#include "inputs/memory/values.h"

namespace tlparse::redact {
namespace {

// What is read of a snapshot goes: the texts that are left are those of the opcodes.
class StacksOnly final : public memory::Sink {
 public:
  explicit StacksOnly(TextRedactor& redactor) : redactor_(redactor) {}
  void set_values(const memory::Values& values) { values_ = &values; }

  void Event(const memory::Members&, std::string_view, std::int64_t) override {}
  void Block(const memory::Members&) override {}
  void Segment(const memory::Members&) override {}
  void Annotation(const memory::Members&) override {}
  std::int64_t Stack(const std::vector<memory::FrameOfSnapshot>& frames) override {
    for (const memory::FrameOfSnapshot& frame : frames)
      redactor_.HarvestFrame(values_->TextAt(frame.function), values_->TextAt(frame.file));
    return ++stacks_;
  }

 private:
  TextRedactor& redactor_;
  const memory::Values* values_ = nullptr;
  std::int64_t stacks_ = 0;
};

// The text of an opcode that pushes one; nothing: it pushes another value.
std::optional<std::string> TextOf(std::string_view opcode) {
  switch (static_cast<unsigned char>(opcode.front())) {
    case 'X':
      return std::string(opcode.substr(5));
    case 0x8C:  // SHORT_BINUNICODE
      return std::string(opcode.substr(2));
    case 0x8D:  // BINUNICODE8
      return std::string(opcode.substr(9));
    case 'V':
      return DecodeRawUnicodeEscape(opcode.substr(1, opcode.size() - 2));
    default:
      return std::nullopt;
  }
}

void AppendText(std::string_view text, std::string& pickle) {
  pickle += 'X';  // BINUNICODE: four bytes of length
  constexpr int kBytes = 4, kBits = 8;
  for (int i = 0; i < kBytes; ++i) pickle += static_cast<char>(text.size() >> (kBits * i) & 0xFF);
  pickle += text;
}

// Calls `take` with each opcode and what belongs to it.
template <typename Take>
Result<void> ForEachOpcode(std::string_view pickle, TextRedactor& redactor, Take take) {
  StacksOnly sink(redactor);
  memory::Values values(sink);
  sink.set_values(values);
  WholePickle source(pickle);
  PickleMachine<WholePickle, memory::Values> machine(source, values);
  bool has_next = true;
  while (has_next) {
    const auto begin = static_cast<std::size_t>(source.at());
    has_next = machine.Step();
    if (machine.problem()) return Fail(ErrorCode::kDamagedInput, machine.problem()->message);
    take(pickle.substr(begin, static_cast<std::size_t>(source.at()) - begin));
  }
  return {};
}

}  // namespace

Result<void> HarvestSnapshot(std::string_view pickle, TextRedactor& redactor) {
  return ForEachOpcode(pickle, redactor, [&](std::string_view opcode) {
    if (const std::optional<std::string> text = TextOf(opcode)) redactor.Harvest(*text, {});
  });
}

Result<std::string> RedactSnapshot(std::string_view pickle, TextRedactor& redactor) {
  constexpr char kFrame = '\x95';  // a length of what follows, which changes
  std::string copy;
  copy.reserve(pickle.size());
  RETURN_IF_ERROR(ForEachOpcode(pickle, redactor, [&](std::string_view opcode) {
    if (const std::optional<std::string> text = TextOf(opcode))
      AppendText(redactor.Redact(*text), copy);
    else if (opcode.front() != kFrame)
      copy += opcode;
  }));
  return copy;
}

}  // namespace tlparse::redact
