// Writes JSON text, compact, in the order of the calls. Text of any bytes is accepted: invalid
// UTF-8 becomes U+FFFD.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

// Appends any text as a JSON string with its quotes.
void AppendJsonString(std::string_view text, std::string& out);

// Calls must describe one value: Begin/End pairs match, a Key precedes every value of an object
// (not checked).
class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view name);
  JsonWriter& String(std::string_view text);
  JsonWriter& Int(std::int64_t value);
  JsonWriter& Real(double value);  // infinities and NaN become null
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // JSON text, unchanged
  // nullopt becomes null.
  JsonWriter& OptionalString(const std::optional<std::string>& text) {
    return text ? String(*text) : Null();
  }
  JsonWriter& OptionalInt(const std::optional<std::int64_t>& value) {
    return value ? Int(*value) : Null();
  }
  JsonWriter& OptionalReal(const std::optional<double>& value) {
    return value ? Real(*value) : Null();
  }

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  void Separate();
  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace tlparse
