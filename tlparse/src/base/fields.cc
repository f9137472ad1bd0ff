#include "base/fields.h"

#include <set>

namespace tlparse {
namespace {

using fields::FieldSchema;
using fields::TypeSchema;

class SchemaWriter {
 public:
  void Object(const TypeSchema& type, bool is_nullable) { Object(json_, type, is_nullable); }
  void Field(JsonWriter& json, std::string_view description, const TypeSchema& type,
             std::span<const std::string_view> words) {
    json.BeginObject();
    if (!description.empty()) json.Key("description").String(description);
    Type(json, type, false, words);
    json.EndObject();
  }
  JsonWriter& json() { return json_; }
  std::string Take() {
    if (!definitions_.empty()) json_.Key("definitions").Raw("{" + definitions_ + "}");
    json_.EndObject();
    return json_.Take();
  }

 private:
  static void TypeName(JsonWriter& json, std::string_view type, bool is_nullable) {
    json.Key("type");
    is_nullable ? json.BeginArray().String(type).String("null").EndArray() : json.String(type);
  }

  static void Required(JsonWriter& json, const TypeSchema& type) {
    for (const FieldSchema& field : type.fields) {
      if (field.is_inlined) {
        Required(json, *field.type);
      } else if (!field.is_missable) {
        json.String(field.name);
      }
    }
  }

  void Properties(JsonWriter& json, const TypeSchema& type) {
    for (const FieldSchema& field : type.fields) {
      if (field.is_inlined) {
        Properties(json, *field.type);
      } else {
        Field(json.Key(field.name), field.description, *field.type, field.words);
      }
    }
  }

  void Object(JsonWriter& json, const TypeSchema& type, bool is_nullable) {
    TypeName(json, "object", is_nullable);
    json.Key("additionalProperties").Bool(false).Key("required").BeginArray();
    Required(json, type);
    json.EndArray().Key("properties").BeginObject();
    Properties(json, type);
    json.EndObject();
  }

  // A reference to the type's definition, which is written once.
  void Named(JsonWriter& json, const TypeSchema& type, bool is_nullable) {
    if (defined_.insert(type.name).second) {
      JsonWriter one;
      one.BeginObject();
      if (!type.description.empty()) one.Key("description").String(type.description);
      Object(one, type, false);
      one.EndObject();
      if (!definitions_.empty()) definitions_ += ',';
      AppendJsonString(type.name, definitions_);
      definitions_ += ':' + one.text();
    }
    const std::string reference = "#/definitions/" + std::string(type.name);
    if (!is_nullable) {
      json.Key("$ref").String(reference);
      return;
    }
    json.Key("anyOf").BeginArray().BeginObject().Key("$ref").String(reference).EndObject();
    json.BeginObject().Key("type").String("null").EndObject().EndArray();
  }

  static void Enum(JsonWriter& json, const TypeSchema& type, bool is_nullable) {
    json.Key("enum").BeginArray();
    for (int i = 0; i <= type.last_value; ++i) json.String(type.value_name(i));
    if (is_nullable) json.Null();
    json.EndArray();
  }

  static void Words(JsonWriter& json, std::span<const std::string_view> words, bool is_nullable) {
    json.Key("enum").BeginArray();
    for (const std::string_view word : words) json.String(word);
    if (is_nullable) json.Null();
    json.EndArray();
  }

  // Members of the schema of a value; no more than those of its type.
  void Type(JsonWriter& json, const TypeSchema& type, bool is_nullable,
            std::span<const std::string_view> words) {
    switch (type.kind) {
      case TypeSchema::Kind::kNullable:
        return Type(json, *type.inner, true, words);
      case TypeSchema::Kind::kBool:
        return TypeName(json, "boolean", is_nullable);
      case TypeSchema::Kind::kNumber:
        return TypeName(json, "number", is_nullable);
      case TypeSchema::Kind::kEnum:
        return Enum(json, type, is_nullable);
      case TypeSchema::Kind::kInteger:
        TypeName(json, "integer", is_nullable);
        if (type.minimum) json.Key("minimum").Int(*type.minimum);
        return;
      case TypeSchema::Kind::kText:
        return words.empty() ? TypeName(json, "string", is_nullable)
                             : Words(json, words, is_nullable);
      case TypeSchema::Kind::kObject:
        return type.name.empty() ? Object(json, type, is_nullable) : Named(json, type, is_nullable);
      case TypeSchema::Kind::kByName:
        TypeName(json, "object", is_nullable);
        return Field(json.Key("additionalProperties"), {}, *type.inner, {});
      case TypeSchema::Kind::kArray:
        TypeName(json, "array", is_nullable);
        return Field(json.Key("items"), {}, *type.inner, {});
    }
  }

  JsonWriter json_;
  std::set<std::string_view> defined_;
  std::string definitions_;  // members of the object "definitions"
};

}  // namespace

std::string SchemaText(std::string_view title, std::string_view description,
                       std::span<const TypeSchema* const> objects) {
  SchemaWriter schema;
  JsonWriter& json = schema.json();
  json.BeginObject().Key("$schema").String("https://json-schema.org/draft/2020-12/schema");
  json.Key("$comment").String("made from the fields of the answer: tlparse schema");
  json.Key("title").String(title);
  if (!description.empty()) json.Key("description").String(description);
  if (objects.size() == 1) {
    schema.Object(*objects.front(), false);
  } else {
    json.Key("oneOf").BeginArray();
    for (const TypeSchema* object : objects) schema.Field(json, {}, *object, {});
    json.EndArray();
  }
  return schema.Take();
}

}  // namespace tlparse
