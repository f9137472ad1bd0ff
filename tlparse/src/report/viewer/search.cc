#include "report/viewer/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "answers/search/text_search.h"
#include "base/json_writer.h"

namespace tlparse {
namespace {

// Each its own member of the object that is open.
void AddLine(const TextLine& line, JsonWriter& json) {
  json.Key("line").Int(line.line).Key("text").String(line.text).Key("marks").BeginArray();
  for (const auto& [begin, end] : line.marks) json.BeginArray().Int(begin).Int(end).EndArray();
  json.EndArray();
}

}  // namespace

Result<std::string> SearchAnswer(Database& database, std::int64_t run_id, std::string_view text,
                                 std::string_view kind, const AskedParticipant& asked) {
  TextSearchOptions options;
  options.asked = asked;
  options.text = text;
  if (!kind.empty()) {
    const auto name = std::find(std::begin(kTextKindNames), std::end(kTextKindNames), kind);
    if (name == std::end(kTextKindNames))
      return Fail(ErrorCode::kUsage, fmt::format("there is no kind of text '{}'", kind));
    options.only = static_cast<TextKind>(name - std::begin(kTextKindNames));
  }
  ASSIGN_OR_RETURN(const TextSearch search, SearchTexts(database, run_id, options));
  JsonWriter json;
  json.BeginObject().Key("is_complete").Bool(search.is_complete).Key("is_case_sensitive");
  json.Bool(search.is_case_sensitive).Key("read_bytes").Int(search.read_bytes);
  if (asked.IsGiven()) json.Key("only").String(asked.Only(0, ""));
  json.Key("texts").BeginArray();
  for (const FoundText& found : search.texts) {
    json.BeginObject().Key("kind").String(kTextKindNames[static_cast<std::size_t>(found.kind)]);
    json.Key("record_id").Int(found.record_id).Key("compile_id");
    found.compile_id ? json.Int(*found.compile_id) : json.Null();
    json.Key("title").String(found.title).Key("direction").String(found.direction);
    json.Key("record_count").Int(found.record_count).Key("ranks").BeginArray();
    for (const std::int64_t rank : found.ranks) json.Int(rank);
    json.EndArray().Key("line_count").Int(found.line_count).Key("lines").BeginArray();
    for (const TextLine& line : found.lines) {
      json.BeginObject();
      AddLine(line, json);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("printed").BeginArray();
  for (const PrintedLine& line : search.printed) {
    json.BeginObject().Key("path").String(line.path).Key("artifact").String(line.artifact);
    json.Key("label").String(line.label);
    AddLine(line.found, json);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace tlparse
