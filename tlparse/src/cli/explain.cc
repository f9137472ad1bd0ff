// tlparse explain [kind]: what a kind of finding means, what to ask and what to try.
#include <fmt/format.h>

#include <cstdio>

#include "base/fields.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/playbooks.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"

namespace tlparse {
namespace {

struct ExplainedKind {
  FindingKind kind;
  std::optional<std::string_view> text;
};
struct ExplainAnswer {
  std::vector<ExplainedKind> kinds;
};

}  // namespace

template <>
struct FieldsOf<ExplainedKind> {
  using Of = ExplainedKind;
  static constexpr FieldList list{
      Field{"kind", &Of::kind, "as in findings.schema.json"},
      Field{"meaning", [](const Of& of) { return MeaningOf(of.kind); }, "one sentence"},
      Missable{"text", &Of::text, "the whole page, Markdown; if one kind was asked for"},
  };
};

template <>
struct FieldsOf<ExplainAnswer> {
  static constexpr FieldList list{Field{"kinds", &ExplainAnswer::kinds}};
};

std::string ExplainSchema() { return SchemaOf<ExplainAnswer>("tlparse explain --json"); }

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
  ExplainAnswer answer;
  if (name) {
    const std::optional<FindingKind> kind = FindingKindOf(*name);
    if (!kind)
      return ReportError(
          {ErrorCode::kUsage,
           fmt::format("there is no kind '{}'; 'tlparse explain' lists them", *name)});
    answer.kinds.push_back({*kind, PlaybookOf(*kind)});
  } else {
    for (std::size_t i = 0; i < kFindingKindCount; ++i)
      answer.kinds.push_back({static_cast<FindingKind>(i), {}});
  }
  if (as_json) {
    PrintJson(ToJson(answer));
  } else if (name) {
    const std::string_view text = *answer.kinds.front().text;
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    for (const auto& [kind, text] : answer.kinds)
      PrintWrapped(fmt::format("{}: {}", Name(kind), MeaningOf(kind)), 0, 4, Style::kBold);
  }
  return kExitDone;
}

}  // namespace tlparse
