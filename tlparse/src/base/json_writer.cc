#include "base/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"

namespace tlparse {

namespace {

void AppendString(std::string& out, std::string_view text) {
  std::string repaired;
  if (!IsTextSafe(text)) {
    repaired = SanitizeUtf8(text);
    text = repaired;
  }
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

}  // namespace

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
  AppendString(text_, name);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::String(std::string_view text) {
  Separate();
  AppendString(text_, text);
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
