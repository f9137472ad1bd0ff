#include <charconv>
#include <cmath>
#include <cstring>

#include "core/utf8.h"
#include "libtrace/json.h"

namespace libtrace {
namespace {

void AppendEscape(uint32_t code_unit, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  const char escape[] = {'\\',
                         'u',
                         kHex[code_unit >> 12 & 15],
                         kHex[code_unit >> 8 & 15],
                         kHex[code_unit >> 4 & 15],
                         kHex[code_unit & 15]};
  out.append(escape, sizeof escape);
}

void AppendControl(unsigned char c, std::string& out) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      AppendEscape(c, out);
  }
}

bool IsPlain(unsigned char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

constexpr uint64_t kOnes = 0x0101010101010101;

// Whether all of eight characters are plain. A subtraction that borrows from the next character
// only makes that one look worse, and happens only if this one is not plain.
bool IsPlain(uint64_t word) {
  const auto zero = [](uint64_t x) { return x - kOnes; };  // high bit where a character is 0
  const uint64_t bad = word | (word - kOnes * 0x20) | (word + kOnes) | zero(word ^ kOnes * '"') |
                       zero(word ^ kOnes * '\\');
  return (bad & kOnes * 0x80) == 0;
}

uint64_t LoadWord(const char* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Whether nothing of `text` needs an escape.
bool IsPlain(std::string_view text) {
  constexpr size_t kSize = sizeof(uint64_t);
  if (text.size() < kSize) {
    if (text.size() >= 4) {
      uint32_t halves[2];
      std::memcpy(&halves[0], text.data(), 4);
      std::memcpy(&halves[1], text.data() + text.size() - 4, 4);
      return IsPlain(uint64_t{halves[1]} << 32 | halves[0]);
    }
    for (const char c : text) {
      if (!IsPlain(static_cast<unsigned char>(c))) return false;
    }
    return true;
  }
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at <= end - kSize; at += kSize) {
    if (!IsPlain(LoadWord(at))) return false;
  }
  return IsPlain(LoadWord(end - kSize));
}
// `before`, the quoted `text` and `after`; the text needs no escape.
void AppendPlain(std::string_view before, std::string_view text, std::string_view after,
                 std::string& out) {
  const size_t size = out.size();
  out.resize(size + before.size() + text.size() + after.size() + 2);  // all at once
  char* at = out.data() + size;
  for (const char c : before) *at++ = c;
  *at++ = '"';
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  at += text.size();
  *at++ = '"';
  for (const char c : after) *at++ = c;
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  if (IsPlain(text)) return AppendPlain({}, text, {}, out);
  out += '"';
  size_t offset = 0;
  while (offset < text.size()) {
    size_t end = offset;
    while (end < text.size() && IsPlain(static_cast<unsigned char>(text[end]))) ++end;
    out.append(text.substr(offset, end - offset));
    if (end == text.size()) break;
    const auto c = static_cast<unsigned char>(text[end]);
    if (c < 0x80) {
      AppendControl(c, out);
      offset = end + 1;
      continue;
    }
    const detail::DecodedCharacter character = detail::DecodeUtf8(text, end);
    if (character.code_point < 0x10000) {
      AppendEscape(character.code_point, out);
    } else {
      AppendEscape(0xD800 + ((character.code_point - 0x10000) >> 10), out);
      AppendEscape(0xDC00 + ((character.code_point - 0x10000) & 0x3FF), out);
    }
    offset = end + character.size;
  }
  out += '"';
}

bool JsonWriter::BreaksLines() const {
  return style_ == JsonStyle::kLinePerToken ||
         (style_ == JsonStyle::kLinePerElement && depth_ == 1);
}

std::string_view JsonWriter::Separator() {
  if (depth_ == 0) return {};
  const uint64_t bit = uint64_t{1} << (depth_ - 1);
  const bool is_first = (has_element_ & bit) == 0;
  has_element_ |= bit;
  if (BreaksLines()) return is_first ? "\n" : ",\n";
  return is_first ? "" : ", ";
}

void JsonWriter::BeforeValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ > 0 && (is_object_ >> (depth_ - 1) & 1) != 0) {
    Key("");
    after_key_ = false;
    return;
  }
  if (depth_ == 0 && wrote_anything())
    *out_ += ' ';  // two values at the top: never happens in ours
  out_->append(Separator());
}

void JsonWriter::Open(char bracket, bool is_object) {
  if (skipped_depth_ > 0) {
    ++skipped_depth_;
    return;
  }
  BeforeValue();
  if (depth_ == kMaxDepth) {
    *out_ += "null";
    skipped_depth_ = 1;
    return;
  }
  *out_ += bracket;
  const uint64_t bit = uint64_t{1} << depth_;
  has_element_ &= ~bit;
  is_object_ = is_object ? is_object_ | bit : is_object_ & ~bit;
  ++depth_;
}

void JsonWriter::Close(char bracket, bool is_object) {
  if (skipped_depth_ > 0) {
    --skipped_depth_;
    return;
  }
  if (depth_ == 0 || ((is_object_ >> (depth_ - 1) & 1) != 0) != is_object)
    return;  // not ours to close
  if (after_key_) Null();
  const bool has_element = (has_element_ >> (depth_ - 1) & 1) != 0;
  // PyTorch writes an empty list payload as "[", an empty line, "]" and an empty object as "{}".
  if (BreaksLines()) {
    if (has_element) {
      *out_ += '\n';
    } else if (style_ == JsonStyle::kLinePerElement) {
      *out_ += "\n\n";
    }
  }
  *out_ += bracket;
  --depth_;
}

JsonWriter& JsonWriter::BeginObject() { return Open('{', true), *this; }
JsonWriter& JsonWriter::EndObject() { return Close('}', true), *this; }
JsonWriter& JsonWriter::BeginArray() { return Open('[', false), *this; }
JsonWriter& JsonWriter::EndArray() { return Close(']', false), *this; }

JsonWriter& JsonWriter::Key(std::string_view name) {
  if (skipped_depth_ > 0) return *this;
  if (depth_ == 0 || (is_object_ >> (depth_ - 1) & 1) == 0) return *this;
  if (after_key_) Null();
  const std::string_view separator = Separator();
  if (IsPlain(name)) {
    AppendPlain(separator, name, ": ", *out_);
  } else {
    out_->append(separator);
    AppendJsonString(name, *out_);
    *out_ += ": ";
  }
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  if (skipped_depth_ > 0) return *this;
  BeforeValue();
  AppendJsonString(text, *out_);
  return *this;
}

JsonWriter& JsonWriter::Number(std::string_view digits) {
  if (skipped_depth_ > 0) return *this;
  BeforeValue();
  out_->append(digits);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return Number({digits, static_cast<size_t>(end - digits)});
}

JsonWriter& JsonWriter::UInt(uint64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return Number({digits, static_cast<size_t>(end - digits)});
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits - 2, value).ptr;
  std::string_view text(digits, static_cast<size_t>(end - digits));
  if (text.find_first_of(".e") == std::string_view::npos) {
    end[0] = '.';
    end[1] = '0';
    text = {digits, text.size() + 2};
  }
  return Number(text);
}

JsonWriter& JsonWriter::Bool(bool value) {
  if (skipped_depth_ > 0) return *this;
  BeforeValue();
  *out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  if (skipped_depth_ > 0) return *this;
  BeforeValue();
  *out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::Json(std::string_view json) {
  if (skipped_depth_ > 0) return *this;
  std::string normalized;
  // Inside a list of kLinePerElement everything is compact.
  const JsonStyle style =
      style_ == JsonStyle::kLinePerElement && depth_ > 0 ? JsonStyle::kOneLine : style_;
  if (!AppendNormalizedJson(json, style, normalized)) return String(json);
  BeforeValue();
  *out_ += normalized;
  return *this;
}

void JsonWriter::Finish() {
  skipped_depth_ = 0;
  while (depth_ > 0) {
    const bool is_object = (is_object_ >> (depth_ - 1) & 1) != 0;
    Close(is_object ? '}' : ']', is_object);
  }
}

}  // namespace libtrace
