#include "artifacts/common/process_state.h"

#include <charconv>

namespace tlparse {

namespace {

// Takes a decimal number off the front of `text`; nothing if there is none or it does not fit.
std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string CompileIds::Label() const {
  std::string label;
  if (compiled_autograd_id) label.append("!").append(std::to_string(*compiled_autograd_id));
  if (!frame_id && !frame_compile_id) return label;
  if (!label.empty()) label += "/";
  label += frame_id ? std::to_string(*frame_id) : "-";
  label += "/";
  return label + (frame_compile_id ? std::to_string(*frame_compile_id) : "-");
}

std::optional<CompileIds> CompileIds::Parse(std::string_view label) {
  CompileIds ids;
  if (label.empty()) return std::nullopt;
  const bool has_autograd = label.front() == '!';
  if (has_autograd) {
    label.remove_prefix(1);
    if (label.empty() || !(ids.compiled_autograd_id = TakeNumber(label))) return std::nullopt;
  }
  if (!has_autograd || (!label.empty() && label.front() == '/')) {
    if (has_autograd) label.remove_prefix(1);
    if (label.empty() || !(ids.frame_id = TakeNumber(label))) return std::nullopt;
    if (label.size() < 2 || label.front() != '/') return std::nullopt;
    label.remove_prefix(1);
    if (!(ids.frame_compile_id = TakeNumber(label))) return std::nullopt;
  }
  if (label.size() > 1 && label.front() == '_') {
    label.remove_prefix(1);
    if (!TakeNumber(label)) return std::nullopt;
  }
  if (!label.empty()) return std::nullopt;
  return ids;
}

}  // namespace tlparse
