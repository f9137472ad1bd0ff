#include "core/json_reader.h"
#include "libtrace/json.h"

namespace libtrace {
namespace {

bool WriteMembers(JsonReader& reader, JsonWriter& json);

// Reads one value and writes it again.
bool WriteValue(JsonReader& reader, JsonWriter& json) {
  switch (reader.Peek()) {
    case '{':
      json.BeginObject();
      return WriteMembers(reader, json) && (json.EndObject(), true);
    case '[':
      json.BeginArray();
      return reader.Array([&] { return WriteValue(reader, json); }) && (json.EndArray(), true);
    case '"': {
      std::string value;
      return reader.String(value) && (json.String(value), true);
    }
    case 't':
      return reader.Word("true") && (json.Bool(true), true);
    case 'f':
      return reader.Word("false") && (json.Bool(false), true);
    case 'n':
      return reader.Word("null") && (json.Null(), true);
    default: {
      if (reader.NotANumber()) return json.Null(), true;
      std::string_view number;
      return reader.Number(number) && (json.Number(number), true);
    }
  }
}

// The members of an object, without its braces.
bool WriteMembers(JsonReader& reader, JsonWriter& json) {
  return reader.Object([&](std::string_view name) {
    json.Key(JsonReader::Decoded(name));
    return WriteValue(reader, json);
  });
}

}  // namespace

JsonWriter& JsonWriter::MembersOf(std::string_view object) {
  std::string checked;
  if (JsonReader(object).Peek() != '{' ||
      !AppendNormalizedJson(object, JsonStyle::kOneLine, checked))
    return Field("args", object);
  JsonReader reader(object);
  WriteMembers(reader, *this);
  return *this;
}

bool AppendNormalizedJson(std::string_view json, JsonStyle style, std::string& out) {
  const size_t size = out.size();
  JsonWriter writer(out, style);
  JsonReader reader(json);
  if (WriteValue(reader, writer) && reader.IsAtEnd()) return true;
  out.resize(size);
  return false;
}

}  // namespace libtrace
