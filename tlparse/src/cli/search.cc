// tlparse search <db> TEXT: where a text occurs in what the run logged.
#include "report/viewer/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "answers/search/text_search.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/rank_output.h"
#include "cli/search.h"
#include "facts/job/participants.h"

namespace tlparse {
namespace {

// "0/0 dynamo_output_graph, ranks 0-3, 2 lines (record 17)", and the lines.
void PrintFound(const FoundText& found) {
  std::string heading =
      found.label.empty() ? found.title : fmt::format("{} {}", found.label, found.title);
  if (!found.direction.empty()) heading += " " + found.direction;
  if (!found.ranks.empty()) heading += ", " + RanksText(found.ranks);
  PrintWrapped(
      fmt::format("{}, {} (record {})", heading,
                  Count(static_cast<std::size_t>(found.line_count), "line"), found.record_id),
      0, 2);
  for (const TextLine& line : found.lines)
    PrintWrapped(fmt::format("{}: {}", line.line, line.text), 4, 6);
}

// "torch_logs.txt, 2 lines of TORCH_LOGS", and the lines with their artifact and compile.
void PrintPrinted(const std::vector<PrintedLine>& printed) {
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const std::string& path = printed[i].path;
    if (i == 0 || printed[i - 1].path != path) {
      const auto lines = std::count_if(printed.begin(), printed.end(),
                                       [&](const PrintedLine& own) { return own.path == path; });
      PrintWrapped(
          fmt::format("{}, {} of TORCH_LOGS", path, Count(static_cast<std::size_t>(lines), "line")),
          0, 2);
    }
    PrintWrapped(
        fmt::format("{}: {}{}{}: {}", printed[i].found.line, printed[i].artifact,
                    printed[i].label.empty() ? "" : " ", printed[i].label, printed[i].found.text),
        4, 6);
  }
}

void PrintTexts(const TextSearch& search) {
  PrintHeading(fmt::format("{}{}", Count(search.texts.size(), "text"),
                           search.is_complete ? "" : ", and there may be more: ask for less"));
  for (const FoundText& found : search.texts) PrintFound(found);
  PrintPrinted(search.printed);
  if (search.texts.empty() && search.printed.empty())
    PrintWrapped(
        "Looked in what records hold beside their header (graphs, code, guards, other texts) and "
        "in "
        "the lines of TORCH_LOGS. Not "
        "in metrics, events, stacks and profiles: those are in the tables of 'tlparse sql'.",
        0, 0);
}

struct SearchArguments {
  AnswerArguments common;
  std::string text, run, kind;
  AskedParticipant who;
  bool all = false;
};

Result<void> Search(Database& database, const SearchArguments& asked) {
  ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database, asked.run));
  RETURN_IF_ERROR(CheckAsked(database, asked.who, run_id, {}));
  if (asked.common.json) {
    ASSIGN_OR_RETURN(const std::string answer,
                     SearchAnswer(database, run_id, asked.text, asked.kind, asked.who));
    std::puts(answer.c_str());
    return {};
  }
  TextSearchOptions options;
  options.asked = asked.who;
  options.text = asked.text;
  const auto kind = std::find(std::begin(kTextKindNames), std::end(kTextKindNames), asked.kind);
  if (kind != std::end(kTextKindNames))
    options.only = static_cast<TextKind>(kind - std::begin(kTextKindNames));
  ASSIGN_OR_RETURN(const TextSearch search, SearchTexts(database, run_id, options));
  PrintBounded(asked.all, "--all, --kind", [&] { PrintTexts(search); });
  if (asked.who.IsGiven()) PrintWrapped(asked.who.Only(0, ""), 0, 2);
  return {};
}

}  // namespace

int RunSearch(std::span<const std::string> arguments) {
  Arguments app(
      "Where a text occurs in what a run logged: graphs, generated code, guards, other payloads, "
      "and in the lines of TORCH_LOGS. Each distinct payload is read once; the search ends after "
      "200 of them or two seconds. "
      "Without an upper-case letter both cases match. re:EXPRESSION and /EXPRESSION/ are regular "
      "expressions, looked for in each line: . [a-z] [^a-z] \\d \\w \\s \\b ^ $ ( ) | * + ? {2,5}.",
      "search");
  SearchArguments asked;
  AddAnswerArguments(app, asked.common);
  app.Add("text", asked.text, "what to look for, at least 2 bytes").Required();
  app.Add("--kind", asked.kind, "only in these: graph, code, guard or log")
      .OneOf({"graph", "code", "guard", "log"});
  AddAsked(app, asked.who);
  app.Add("--run", asked.run, "the run of this name (default: the latest)");
  app.Flag("--all", asked.all, "every text that was found");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  return AnswerFrom(asked.common.database,
                    [&](Database& database) { return Search(database, asked); });
}

}  // namespace tlparse
