#include "cli/mcp/output_schema.h"

#include <simdjson.h>

#include <array>

#include "base/json_writer.h"
#include "cli/embedded_texts.h"
#include "cli/schemas.h"

namespace tlparse {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

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

void Relax(element schema, int depth, bool is_of_names, JsonWriter& json) {
  switch (schema.type()) {
    case element_type::OBJECT:
      json.BeginObject();
      for (const auto& [key, value] : simdjson::dom::object(schema)) {
        if (!is_of_names && (IsDropped(key) || value.is_bool())) continue;
        // Another file's.
        if (!is_of_names && key == "$ref" && !std::string_view(value).starts_with('#')) continue;
        if (depth >= kDeepest && value.type() == element_type::OBJECT) continue;
        // Without what is required several may hold.
        json.Key(!is_of_names && key == "oneOf" ? "anyOf" : key);
        Relax(value, depth + 1, !is_of_names && key == "properties", json);
      }
      json.EndObject();
      return;
    case element_type::ARRAY:
      json.BeginArray();
      for (const element one : simdjson::dom::array(schema)) Relax(one, depth, false, json);
      json.EndArray();
      return;
    default:
      json.Raw(simdjson::minify(schema));
  }
}

constexpr std::string_view kEnvelope =
    R"(,"left_out":{"type":"array","description":"lists of which a part is shown","items":{"type":"object","properties":{"where":{"type":"string"},"shown":{"type":"integer"},"of":{"type":"integer"}}}},)"
    R"("texts_cut":{"type":"integer"},"next_cursor":{"type":"string"},"more":{"type":"string"}})";

}  // namespace

std::string OutputSchema(std::string_view stem) {
  JsonWriter answer, definitions;
  constexpr std::string_view kAnswerFolder = "answers/";
  const std::string text =
      stem.starts_with(kAnswerFolder)
          ? AnswerSchema(stem.substr(kAnswerFolder.size()))
          : std::string(EmbeddedText("json/" + std::string(stem) + ".schema.json"));
  simdjson::dom::parser parser;
  element schema;
  if (parser.parse(simdjson::padded_string(text)).get(schema) == simdjson::SUCCESS) {
    Relax(schema, 0, false, answer);
    element own;
    if (schema["definitions"].get(own) == simdjson::SUCCESS) Relax(own, 0, true, definitions);
  } else {
    answer.BeginObject().Key("type").String("object").EndObject();
  }
  std::string whole = R"({"type":"object","required":["answer"],"properties":{"answer":)";
  whole += answer.text();
  whole += kEnvelope;
  if (!definitions.text().empty()) whole += R"(,"definitions":)" + definitions.text();
  return whole + "}";
}

}  // namespace tlparse
