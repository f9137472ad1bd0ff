// tlparse explain [kind]: what a kind of finding means, what to ask and what to try.
#include <fmt/format.h>

#include <cstdio>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/playbooks.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

JsonWriter KindsToJson(std::span<const FindingKind> kinds, bool with_text) {
  JsonWriter json;
  json.BeginObject().Key("kinds").BeginArray();
  for (const FindingKind kind : kinds) {
    json.BeginObject().Key("kind").String(Name(kind)).Key("meaning").String(MeaningOf(kind));
    if (with_text) json.Key("text").String(PlaybookOf(kind));
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json;
}

}  // namespace

int RunExplain(std::span<const std::string> arguments) {
  Arguments app(
      "What a kind of finding means, what else looks like it, what to ask, what to try, and how to "
      "see that it helped. Without a kind: all kinds.",
      "explain");
  std::optional<std::string> name;
  bool as_json = false;
  app.Add("kind", name, "a kind of finding, like cold_cache");
  app.Flag("--json", as_json, "JSON (schemas/json/answers/explain.schema.json)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  std::vector<FindingKind> kinds;
  if (name) {
    const std::optional<FindingKind> kind = FindingKindOf(*name);
    if (!kind)
      return ReportError(
          {ErrorCode::kUsage,
           fmt::format("there is no kind '{}'; 'tlparse explain' lists them", *name)});
    kinds.push_back(*kind);
  } else {
    for (std::size_t i = 0; i < kFindingKindCount; ++i)
      kinds.push_back(static_cast<FindingKind>(i));
  }
  if (as_json) {
    PrintJson(KindsToJson(kinds, name.has_value()));
  } else if (name) {
    const std::string_view text = PlaybookOf(kinds.front());
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    for (const FindingKind kind : kinds)
      PrintWrapped(fmt::format("{}: {}", Name(kind), MeaningOf(kind)), 0, 4, Style::kBold);
  }
  return kExitDone;
}

}  // namespace tlparse
