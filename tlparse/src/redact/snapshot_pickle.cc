#include "redact/snapshot_pickle.h"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/common/pickle_machine.h"
#include "inputs/common/pickle_text.h"
#include "inputs/memory/values.h"

namespace tlparse::redact {
namespace {

// What is read of a snapshot goes: the texts that are left are those of the opcodes.
class StacksOnly final : public memory::Sink {
 public:
  explicit StacksOnly(TextRedactor& redactor) : redactor_(redactor) {}
  void set_values(const memory::Values& values) { values_ = &values; }

  void Event(const memory::Members&, std::string_view, std::optional<std::int64_t>) override {}
  void Block(const memory::Members&) override {}
  void Segment(const memory::Members&) override {}
  void Annotation(const memory::Members&) override {}
  void HostSegment() override {}
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

void WriteText(std::string_view text, std::ostream& pickle) {
  pickle << 'X';  // BINUNICODE: four bytes of length
  constexpr int kBytes = 4, kBits = 8;
  for (int i = 0; i < kBytes; ++i) pickle << static_cast<char>(text.size() >> (kBits * i) & 0xFF);
  pickle << text;
}

// Gives the bytes of the pickle to the machine, and keeps those of the latest opcode.
class OpcodeSource {
 public:
  explicit OpcodeSource(memory::StreamSource& source) : source_(source) {}
  bool IsAtEnd() { return source_.IsAtEnd(); }
  std::int64_t at() const { return source_.at(); }
  bool EndsWithStop() const { return source_.EndsWithStop(); }
  unsigned char Next() {
    const unsigned char byte = source_.Next();
    opcode_ += static_cast<char>(byte);
    return byte;
  }
  std::optional<std::string_view> Take(std::uint64_t size) {
    const std::optional<std::string_view> taken = source_.Take(size);
    if (taken) opcode_ += *taken;
    is_shortened_ = taken && taken->size() < size;
    return taken;
  }
  std::optional<std::string_view> TakeLine() {
    const std::optional<std::string_view> line = source_.TakeLine();
    if (line) opcode_.append(*line) += '\n';
    return line;
  }

  void Begin() { opcode_.clear(), is_shortened_ = false; }
  const std::string& opcode() const { return opcode_; }
  bool is_shortened() const { return is_shortened_; }  // it had more bytes than are kept

 private:
  memory::StreamSource& source_;
  std::string opcode_;
  bool is_shortened_ = false;
};

// Calls `take_text` with the text of each opcode that pushes one, `take` with each other opcode and what belongs to it.
template <typename TakeText, typename Take>
Result<void> ForEachOpcode(memory::StreamSource& pickle, TextRedactor& redactor, TakeText take_text,
                           Take take) {
  StacksOnly sink(redactor);
  memory::Values values(sink);
  sink.set_values(values);
  OpcodeSource source(pickle);
  PickleMachine<OpcodeSource, memory::Values> machine(source, values);
  bool has_next = true;
  while (has_next) {
    source.Begin();
    has_next = machine.Step();
    if (pickle.error()) return tl::unexpected<Error>(*pickle.error());
    if (machine.problem()) return Fail(ErrorCode::kDamagedInput, machine.problem()->message);
    if (const std::optional<std::string> text = TextOf(source.opcode()))
      take_text(*text);
    else if (source.is_shortened())
      return Fail(ErrorCode::kDamagedInput, "it holds a number of more than 1 MiB");
    else
      take(std::string_view(source.opcode()));
  }
  return {};
}

}  // namespace

Result<void> HarvestSnapshot(memory::StreamSource& pickle, TextRedactor& redactor) {
  return ForEachOpcode(
      pickle, redactor, [&](std::string_view text) { redactor.Harvest(text, {}); },
      [](std::string_view) {});
}

Result<void> RedactSnapshot(memory::StreamSource& pickle, TextRedactor& redactor,
                            std::ostream& out) {
  constexpr char kFrame = '\x95';  // a length of what follows, which changes
  return ForEachOpcode(
      pickle, redactor, [&](std::string_view text) { WriteText(redactor.Redact(text), out); },
      [&](std::string_view opcode) {
        if (opcode.front() != kFrame) out << opcode;
      });
}

}  // namespace tlparse::redact
