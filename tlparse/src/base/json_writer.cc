#include "base/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/plain_bytes.h"
#include "base/utf8.h"

namespace tlparse {

namespace {

char* WriteEscape(char c, char* to) {
  constexpr char kHex[] = "0123456789abcdef";
  *to++ = '\\';
  switch (c) {
    case '\n':
      *to++ = 'n';
      return to;
    case '\r':
      *to++ = 'r';
      return to;
    case '\t':
      *to++ = 't';
      return to;
    case '"':
    case '\\':
      *to++ = c;
      return to;
    default:
      std::memcpy(to, "u00", 3);
      to[3] = kHex[c >> 4];
      to[4] = kHex[c & 15];
      return to + 5;
  }
}

constexpr std::size_t kBuffer = 4096;

void AppendEscaped(std::string_view text, std::string& out) {
  std::array<char, kBuffer + 2 * kBlockBytes> buffer;
  char* to = buffer.data();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (CopyPlain<JsonSpecialBytes>(at, end, to)) to = WriteEscape(*at++, to);
    if (to - buffer.data() >= static_cast<std::ptrdiff_t>(kBuffer)) {
      out.append(buffer.data(), to);
      to = buffer.data();
    }
  }
  out.append(buffer.data(), to);
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  IsTextSafe(text) ? AppendEscaped(text, out) : AppendEscaped(SanitizeUtf8(text), out);
  out += '"';
}

void JsonWriter::Separate() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = true;
}
JsonWriter& JsonWriter::BeginObject() {
  Separate();
  text_ += '{';
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::EndObject() {
  text_ += '}';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::BeginArray() {
  Separate();
  text_ += '[';
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::EndArray() {
  text_ += ']';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Key(std::string_view name) {
  Separate();
  AppendJsonString(name, text_);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::String(std::string_view text) {
  Separate();
  AppendJsonString(text, text_);
  return *this;
}
JsonWriter& JsonWriter::Int(std::int64_t value) {
  Separate();
  text_ += fmt::format("{}", value);
  return *this;
}
JsonWriter& JsonWriter::Real(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  text_ += fmt::format("{}", value);
  return *this;
}
JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  return *this;
}
JsonWriter& JsonWriter::Null() {
  Separate();
  text_ += "null";
  return *this;
}
JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  text_ += json;
  return *this;
}

}  // namespace tlparse
