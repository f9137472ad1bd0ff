// The part of TextRedactor that hides the sizes of tensors.
#include <algorithm>
#include <array>
#include <string>

#include "redact/characters.h"
#include "redact/text_redactor.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostDigits = 15;  // a longer number is a time

// Keys whose numbers are sizes, in records of PyTorch, profiles and recorder dumps.
constexpr std::array<std::string_view, 18> kSizeKeys = {
    "size",          "sizes",          "stride",        "strides",     "shape",
    "shapes",        "Input Dims",     "Input Strides", "input_sizes", "output_sizes",
    "In msg nelems", "Out msg nelems", "nelems",        "numel",       "grid",
    "bytes",         "Bytes",          "storage_offset"};

// "24", and "24L" of C++.
std::size_t DigitsOfNumber(std::string_view token) {
  const std::size_t digits = redact::RunEnd(token, 0, IsDigit);
  return digits == token.size() || token.substr(digits) == "L" ? digits : 0;
}

}  // namespace

// A number of a text, as of generated code, graphs and guards, is a size unless it belongs to
// something else: "cuda:12", "train.py:12", "12/0", "line 12", "1.25", "kernel:12", and values of
// options ("inductor_config[max_fusion_size]: 64") and of JSON within texts.
bool TextRedactor::ReplaceSize(std::string_view text, std::size_t at, std::size_t end,
                               std::string& out) {
  const std::size_t digits = DigitsOfNumber(text.substr(at, end - at));
  if (digits < 2 || digits > kMostDigits) return false;
  constexpr std::string_view kBefore = ":/._%@#$", kAfter = "./:";
  constexpr std::array<std::string_view, 4> kOthers = {"line ", ".py(", "]: ", "\": "};
  const std::string_view before = text.substr(0, at);
  if (!before.empty() && kBefore.find(before.back()) != std::string_view::npos) return false;
  if (end < text.size() && kAfter.find(text[end]) != std::string_view::npos &&
      end + 1 < text.size() && IsNameCharacter(text[end + 1]))
    return false;
  if (std::any_of(kOthers.begin(), kOthers.end(),
                  [&](std::string_view other) { return before.ends_with(other); }))
    return false;
  ++replaced_;
  out += pseudonyms_.OfNumber(text.substr(at, digits));
  out += text.substr(at + digits, end - at - digits);
  return true;
}

std::string TextRedactor::RedactJson(std::string_view json) {
  if (!hides_sizes_) return Redact(json);
  std::string out;
  std::string_view key;
  for (std::size_t at = 0; at < json.size();) {
    std::size_t end = at + 1;
    if (json[at] == '"') {
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, json.size());
      const std::string_view text = json.substr(at, end - at);
      const std::size_t next = redact::RunEnd(json, end, [](char c) { return c == ' '; });
      if (next < json.size() && json[next] == ':') key = text.substr(1, text.size() - 2);
      out += Redact(text);
    } else if (IsDigit(json[at])) {
      const auto is_of_number = [](char c) {
        return IsDigit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
      };
      end = redact::RunEnd(json, at, is_of_number);
      const std::string_view number = json.substr(at, end - at);
      const bool is_size = std::find(kSizeKeys.begin(), kSizeKeys.end(), key) != kSizeKeys.end() &&
                           number.size() >= 2 && number.size() <= kMostDigits &&
                           std::all_of(number.begin(), number.end(), IsDigit);
      replaced_ += is_size ? 1 : 0;
      out += is_size ? std::string_view(pseudonyms_.OfNumber(number)) : number;
    } else {
      out += json[at];
    }
    at = end;
  }
  return out;
}

}  // namespace tlparse
