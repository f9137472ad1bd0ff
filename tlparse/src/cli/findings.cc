// tlparse findings <db>: what is wrong with a run and why, most urgent first.
#include "findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/finding_fields.h"
#include "cli/finding_output.h"
#include "cli/rank_fields.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/job/not_looked_for.h"
#include "facts/job/participants.h"
#include "facts/text/shorten.h"
#include "report/finding_text.h"

namespace tlparse {
namespace {

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

// The findings of this id, among those and their evidence.
std::vector<Finding> OfId(const std::vector<Finding>& findings, const std::string& id) {
  std::vector<Finding> found;
  for (const Finding& one : findings) {
    if (one.id == id) found.push_back(one);
    for (Finding& more : OfId(one.evidence, id)) found.push_back(std::move(more));
  }
  return found;
}

struct Filter {
  std::optional<std::string> severity, kind, id;
  AskedParticipant asked;
  std::optional<std::int64_t> limit;

  // Nothing, or what is wrong with it.
  std::optional<Error> Check() const {
    for (const std::string& word : kind ? Words(*kind) : std::vector<std::string>()) {
      if (!FindingKindOf(word))
        return Error{
            ErrorCode::kUsage,
            fmt::format("--kind: there is no kind '{}'; see 'tlparse findings --help'", word)};
    }
    return std::nullopt;
  }

  void Apply(std::vector<Finding>& findings) const {
    if (id) findings = OfId(findings, *id);
    if (severity) {
      const FindingSeverity least = *FindingSeverityOf(*severity);
      std::erase_if(findings, [&](const Finding& one) { return one.severity > least; });
    }
    if (kind) {
      const std::vector<std::string> kinds = Words(*kind);
      std::erase_if(findings, [&](const Finding& one) {
        return std::find(kinds.begin(), kinds.end(), Name(one.kind)) == kinds.end();
      });
    }
    if (limit && findings.size() > static_cast<std::size_t>(*limit))
      findings.resize(static_cast<std::size_t>(*limit));
  }
};

std::string KindList() {
  std::string text = "Kinds:";
  for (std::size_t i = 0; i < kFindingKindCount; ++i)
    text += fmt::format("{}{}", i == 0 ? " " : ", ", Name(static_cast<FindingKind>(i)));
  return text;
}

struct AnsweredRun {
  std::string name;
  std::int64_t launch = 1;
  std::size_t launch_count = 1;
  std::vector<Finding> findings;
  std::string not_looked_for;  // empty: logs were looked through
  std::string only;            // with --rank or --process: KeepNamed
};

Result<AnsweredRun> Identify(Database& database, const FindingsOptions& options) {
  AnsweredRun run;
  ASSIGN_OR_RETURN(const std::int64_t id, FindRun(database, options.run));
  ASSIGN_OR_RETURN(run.launch, FindLaunch(database, id, options.launch));
  ASSIGN_OR_RETURN(run.name, NameOfRun(database, id));
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, id));
  run.launch_count = std::max<std::size_t>(1, launches.size());
  ASSIGN_OR_RETURN(run.findings, FindFindings(database, options));
  ASSIGN_OR_RETURN(run.not_looked_for,
                   NotLookedFor(database, id, "recompiles and graph breaks are from its text"));
  // A cause that was found may be all there is.
  const bool has_cause =
      std::any_of(run.findings.begin(), run.findings.end(),
                  [](const Finding& one) { return one.severity != FindingSeverity::kNote; });
  ASSIGN_OR_RETURN(const std::string messages, NoMessages(database, id));
  if (!messages.empty() && !has_cause)
    run.not_looked_for += (run.not_looked_for.empty() ? "not looked for: " : "; ") + messages;
  return run;
}

// How findings are written.
struct FindingsForm {
  std::string heading, before_last_line;
  std::function<std::string(const Finding&)> whole;
  std::function<std::string(const Finding&, const std::string& title)> short_one;
};

FindingsForm TextForm(const std::string& heading) {
  return {Captured([&] { PrintHeading(heading); }), "",
          [](const Finding& one) { return Captured([&] { PrintFindings({one}); }); },
          [](const Finding& one, const std::string& title) {
            return Captured(
                [&] { PrintWrapped(fmt::format("{}: {}", Name(one.severity), title), 0, 2); });
          }};
}

FindingsForm MarkdownForm(const std::string& heading, bool has_findings) {
  return {FindingsMarkdownHeading(heading, has_findings), "\n", &FindingMarkdown,
          [](const Finding& one, const std::string& title) {
            return fmt::format("- **{}**: {}\n", Name(one.severity), MarkdownText(title));
          }};
}

// The first ones whole, of others the titles, as far as there is room for `most` characters.
void PrintMostUrgent(const std::vector<Finding>& findings, const FindingsForm& form,
                     std::size_t most) {
  constexpr std::size_t kLastLine = 130;  // for the last line
  std::string text = form.heading;
  std::size_t whole = 0, shown = 0;
  for (; shown < findings.size(); ++shown) {
    const std::size_t size = CountCharacters(text) + kLastLine;
    const std::size_t room = most - std::min(most, size);
    std::string one;
    if (whole == shown) one = form.whole(findings[shown]);
    if (shown == 0) one = FirstLines(one, room, "--all");
    if (!one.empty() && CountCharacters(one) <= room) {
      ++whole;
    } else {
      one = form.short_one(findings[shown], Shorten(findings[shown].title, 200));
      if (CountCharacters(one) > room) break;
    }
    text += one;
  }
  std::fputs(text.c_str(), stdout);
  if (whole < findings.size()) std::fputs(form.before_last_line.c_str(), stdout);
  if (shown < findings.size())
    fmt::print("and {} more: {} (--all)\n", findings.size() - shown,
               CountBySeverity(std::span(findings).subspan(shown)));
  else if (whole < shown)
    fmt::print("of the last {} only the title is shown (--all, --id)\n", shown - whole);
}

struct AnsweredForm {
  bool markdown = false, evidence = false, all = false;
};

void PrintAnswered(const AnsweredRun& run, const AnsweredForm& form) {
  const std::vector<Finding>& findings = run.findings;
  const std::string heading =
      FindingsHeading(run.name, run.launch, run.launch_count, findings.size());
  if (form.markdown && form.all) {
    std::fputs(FindingsMarkdown(findings, heading).c_str(), stdout);
  } else if (form.all) {
    PrintHeading(heading);
    PrintFindings(findings);
  } else {
    PrintMostUrgent(findings,
                    form.markdown ? MarkdownForm(heading, !findings.empty()) : TextForm(heading),
                    form.evidence ? kMostAnswerText : kMostFindingsText);
  }
  if (form.markdown) return;
  for (const std::string& said : {run.only, run.not_looked_for})
    if (!said.empty()) PrintWrapped(said, 0, 2);
}

}  // namespace

template <>
struct FieldsOf<AnsweredRun> {
  using Of = AnsweredRun;
  static constexpr std::string_view description =
      "What is wrong with a run and why, most urgent first.";
  static constexpr FieldList list{
      Field{"run", &Of::name},
      Field{"launch", AtLeast<1>(&Of::launch)},
      Field{"launch_count", AtLeast<1>(&Of::launch_count)},
      Field{"findings", &Of::findings},
      Missable{"not_looked_for", OrNull{&Of::not_looked_for},
               "what the inputs cannot show, so that no finding does not mean that all is well"},
      Missable{"only", OrNull{&Of::only}, kOnly},
  };
};

std::string FindingsSchema() { return SchemaOf<AnsweredRun>("tlparse findings --json"); }

int RunFindings(std::span<const std::string> arguments) {
  Arguments app(
      "What is wrong with a run and why, the most urgent first: compiles that failed, logs that "
      "end inside a compile, ranks that differ from the others, cold caches, recompiles, graph "
      "breaks.",
      "findings");
  AnswerArguments common;
  FindingsOptions options;
  Filter filter;
  AnsweredForm form;
  AddAnswerArguments(app, common);
  app.Add("--run", options.run, "the run of this name (default: the latest)");
  app.Add("--launch", options.launch, "this launch (1 is the first; default: the latest)")
      .Positive();
  app.Add("--severity", filter.severity, "this severity and above: error, warning or note")
      .OneOf({"error", "warning", "note"});
  app.Add("--id", filter.id, "only the finding of this id, also where it is evidence of another");
  app.Add("--kind", filter.kind, "only these kinds, separated by commas");
  AddAsked(app, filter.asked, "only those that name this rank, and those of all ranks",
           "only those that name the process of this pid, and those of all");
  app.Add("--limit", filter.limit, "maximum number of findings").Positive();
  app.Add("--world-size", options.world_size,
          "expected number of ranks (default: as many as the inputs show)")
      .Positive();
  app.Flag("--all", form.all, "every finding whole, however long the text is");
  app.Flag("--evidence", form.evidence,
           "under each finding the lines of the logs behind it, and what was looked for and is not "
           "there");
  app.Flag("--markdown", form.markdown, "Markdown, to be pasted into a chat or an issue");
  app.SetFooter(KindList());
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (const std::optional<Error> error = filter.Check()) return ReportError(*error);
  Result<Database> database = OpenAskedDatabase(common.database);
  if (!database) return ReportError(database.error());
  Result<AnsweredRun> run = Identify(*database, options);
  if (!run) return ReportError(run.error());
  std::vector<Finding>& findings = run->findings;
  Result<std::string> only =
      KeepNamed(*database, filter.asked, options.run, options.launch, findings);
  if (!only) return ReportError(only.error());
  run->only = *std::move(only);
  filter.Apply(findings);
  if (filter.id && findings.empty())
    return ReportError(
        {ErrorCode::kNotFound, fmt::format("--id: there is no finding '{}'", *filter.id)});
  const Result<void> lines =
      form.evidence ? AddLines(*database, options.run, run->launch, findings) : Result<void>();
  if (!lines) return ReportError(lines.error());
  common.json ? PrintJson(ToJson(*run)) : PrintAnswered(*run, form);
  return kExitDone;
}

}  // namespace tlparse
