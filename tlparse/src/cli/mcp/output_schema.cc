#include "cli/mcp/output_schema.h"

#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "cli/embedded_texts.h"
#include "cli/schemas.h"

namespace tlparse {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

// What holds of a whole document only, or is read by people.
constexpr std::array<std::string_view, 12> kDropped = {
    "$schema",  "$comment", "title",   "description", "required",    "minItems",
    "maxItems", "minimum",  "maximum", "pattern",     "definitions", "$id"};
constexpr int kDeepest = 9;

bool IsDropped(std::string_view key) {
  for (const std::string_view one : kDropped)
    if (one == key) return true;
  return false;
}

// What a schema is of.
enum class SchemaPlace {
  kValue,
  kMember,  // of an object: one that is null is left out of the answer
  kNames,   // members by name, as in definitions
};

using Names = std::span<const std::string_view>;

void Relax(element schema, Names omitted, int depth, SchemaPlace place, JsonWriter& json);

// Of "type", "enum", "anyOf": what says that the value may be null.
bool IsNull(std::string_view key, element choice) {
  std::string_view type;
  if (key == "enum") return choice.is_null();
  if (key == "type") return choice.get(type) == simdjson::SUCCESS && type == "null";
  return choice["type"].get(type) == simdjson::SUCCESS && type == "null";
}

void RelaxChoices(std::string_view key, element choices, Names omitted, int depth,
                  JsonWriter& json) {
  std::vector<element> kept;
  for (const element one : simdjson::dom::array(choices))
    if (!IsNull(key, one)) kept.push_back(one);
  const bool is_one_type = key == "type" && kept.size() == 1;
  if (!is_one_type) json.BeginArray();
  for (const element one : kept) Relax(one, omitted, depth, SchemaPlace::kValue, json);
  if (!is_one_type) json.EndArray();
}

// Members that have equal schemas as one pattern: a client reads the list of tools in each session.
void RelaxProperties(element properties, Names omitted, int depth, JsonWriter& json) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> groups;
  for (const auto& [name, schema] : object(properties)) {
    if (depth >= kDeepest && schema.type() == element_type::OBJECT) continue;
    if (std::find(omitted.begin(), omitted.end(), name) != omitted.end()) continue;
    JsonWriter own;
    Relax(schema, omitted, depth + 1, SchemaPlace::kMember, own);
    const bool is_word =
        std::all_of(name.begin(), name.end(), [](char c) { return IsAlphanumeric(c) || c == '_'; });
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& one) {
      return is_word && one.first == own.text();
    });
    if (same == groups.end())
      groups.push_back({std::string(own.text()), {name}});
    else
      same->second.push_back(name);
  }
  for (const bool is_pattern : {false, true}) {
    if (std::none_of(groups.begin(), groups.end(),
                     [&](const auto& one) { return (one.second.size() > 1) == is_pattern; }))
      continue;
    json.Key(is_pattern ? "patternProperties" : "properties").BeginObject();
    for (const auto& [schema, names] : groups) {
      if ((names.size() > 1) != is_pattern) continue;
      json.Key(is_pattern ? fmt::format("^({})$", fmt::join(names, "|"))
                          : std::string(names.front()))
          .Raw(schema);
    }
    json.EndObject();
  }
}

void Relax(element schema, Names omitted, int depth, SchemaPlace place, JsonWriter& json) {
  const bool is_of_names = place == SchemaPlace::kNames;
  switch (schema.type()) {
    case element_type::OBJECT:
      json.BeginObject();
      for (const auto& [key, value] : object(schema)) {
        if (!is_of_names && (IsDropped(key) || value.is_bool())) continue;
        // Another file's.
        if (!is_of_names && key == "$ref" && !std::string_view(value).starts_with('#')) continue;
        if (depth >= kDeepest && value.type() == element_type::OBJECT) continue;
        if (!is_of_names && key == "properties" && value.type() == element_type::OBJECT) {
          RelaxProperties(value, omitted, depth + 1, json);
          continue;
        }
        // Without what is required several may hold.
        json.Key(!is_of_names && key == "oneOf" ? "anyOf" : key);
        const bool is_choice = key == "type" || key == "enum" || key == "oneOf" || key == "anyOf";
        if (place == SchemaPlace::kMember && is_choice && value.is_array()) {
          RelaxChoices(key, value, omitted, depth + 1, json);
          continue;
        }
        Relax(value, omitted, depth + 1, SchemaPlace::kValue, json);
      }
      json.EndObject();
      return;
    case element_type::ARRAY:
      json.BeginArray();
      for (const element one : simdjson::dom::array(schema))
        Relax(one, omitted, depth, SchemaPlace::kValue, json);
      json.EndArray();
      return;
    default:
      json.Raw(simdjson::minify(schema));
  }
}

// Those that the answer refers to, or another one that it refers to.
std::string UsedDefinitions(element schema, Names omitted, std::string text) {
  std::string used;
  object definitions;
  if (schema["definitions"].get(definitions) != simdjson::SUCCESS) return used;
  std::vector<std::string_view> known;
  for (bool has_more = true; has_more;) {
    has_more = false;
    for (const auto& [name, definition] : definitions) {
      if (text.find(fmt::format("\"#/definitions/{}\"", name)) == std::string::npos ||
          std::find(known.begin(), known.end(), name) != known.end())
        continue;
      JsonWriter json;
      Relax(definition, omitted, 1, SchemaPlace::kValue, json);
      used += fmt::format("{}\"{}\":{}", used.empty() ? "" : ",", name, json.text());
      text += json.text();
      known.push_back(name);
      has_more = true;
    }
  }
  return used;
}

constexpr std::string_view kEnvelope =
    R"(,"left_out":{"type":"array"},)"
    R"("texts_cut":{"type":"integer"},"next_cursor":{"type":"string"},"more":{"type":"string"}})";

}  // namespace

std::string OutputSchema(std::string_view stem, Names omitted) {
  JsonWriter answer;
  std::string definitions;
  constexpr std::string_view kAnswerFolder = "answers/";
  const std::string text =
      stem.starts_with(kAnswerFolder)
          ? AnswerSchema(stem.substr(kAnswerFolder.size()))
          : std::string(EmbeddedText("json/" + std::string(stem) + ".schema.json"));
  simdjson::dom::parser parser;
  element schema;
  if (parser.parse(simdjson::padded_string(text)).get(schema) == simdjson::SUCCESS) {
    Relax(schema, omitted, 0, SchemaPlace::kValue, answer);
    definitions = UsedDefinitions(schema, omitted, std::string(answer.text()));
  } else {
    answer.BeginObject().Key("type").String("object").EndObject();
  }
  std::string whole = R"({"type":"object","required":["answer"],"properties":{"answer":)";
  whole += answer.text();
  whole += kEnvelope;
  if (!definitions.empty()) whole += R"(,"definitions":{)" + definitions + "}";
  return whole + "}";
}

}  // namespace tlparse
