#include "inputs/nsys/range.h"

#include <charconv>

#include "log/inductor_texts.h"

namespace tlparse {
namespace {

std::optional<std::int64_t> LeadingNumber(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// "aten::mm, seq = 12, op_id = 7" → the name and 12.
std::optional<std::int64_t> TakeSequence(std::string_view& text) {
  const std::size_t at = text.find(", seq = ");
  std::optional<std::int64_t> sequence;
  if (at != text.npos) {
    sequence = LeadingNumber(text.substr(at + 8));
    text = text.substr(0, at);
  }
  if (const std::size_t op = text.find(", op_id = "); op != text.npos) text = text.substr(0, op);
  return sequence;
}

}  // namespace

NsysRange ParseNsysRange(std::string_view text) {
  constexpr std::string_view kStep = "ProfilerStep#";
  using inductor::kGraphCall, inductor::kRegion, inductor::kFunction, inductor::kBackward;
  NsysRange range;
  range.sequence = TakeSequence(text);
  range.name = text;
  if (text.starts_with(kGraphCall)) {
    range.slice = CompiledSliceKind::kGraphCall;
    range.name = text.substr(kGraphCall.size());
    range.name = range.name.substr(0, range.name.find(' '));
    if (range.name == "None") range.name = {};
  } else if (text.starts_with(kRegion)) {
    range.slice = CompiledSliceKind::kRegion;
    range.name = text.substr(kRegion.size());
  } else if (text == kFunction || text == kBackward) {
    range.slice = text == kFunction ? CompiledSliceKind::kFunction : CompiledSliceKind::kBackward;
    range.name = {};
  } else if (text.find("::") != text.npos) {
    range.is_op = true;
  } else if (text.starts_with(kStep)) {
    range.step = LeadingNumber(text.substr(kStep.size()));
  }
  return range;
}

}  // namespace tlparse
