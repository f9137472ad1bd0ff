#include "cli/mcp/only_finding.h"

#include <simdjson.h>

#include <vector>

#include "base/json_writer.h"

namespace tlparse {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

void AddOfId(const array& findings, std::string_view id, std::vector<element>& found) {
  for (const element one : findings) {
    std::string_view own;
    if (one["id"].get(own) == simdjson::SUCCESS && own == id) found.push_back(one);
    array evidence;
    if (one["evidence"].get(evidence) == simdjson::SUCCESS) AddOfId(evidence, id, found);
  }
}

}  // namespace

std::optional<std::string> OnlyFinding(std::string_view findings, std::string_view id) {
  simdjson::dom::parser parser;
  object document;
  array all;
  if (parser.parse(findings.data(), findings.size()).get(document) != simdjson::SUCCESS ||
      document["findings"].get(all) != simdjson::SUCCESS)
    return std::nullopt;
  std::vector<element> found;
  AddOfId(all, id, found);
  if (found.empty()) return std::nullopt;
  JsonWriter json;
  json.BeginObject();
  for (const auto& [name, value] : document) {
    json.Key(name);
    if (name != "findings") {
      json.Raw(simdjson::minify(value));
      continue;
    }
    json.BeginArray();
    for (const element one : found) json.Raw(simdjson::minify(one));
    json.EndArray();
  }
  json.EndObject();
  return json.Take();
}

}  // namespace tlparse
