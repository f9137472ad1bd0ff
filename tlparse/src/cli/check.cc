// tlparse check <db>: budgets for CI. Exit code 1 if the run is not within them.
#include "answers/check/check.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "base/fields.h"
#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/budget.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/fleet_arguments.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "fleet/fleet_answer.h"
#include "fleet/run_selection.h"
#include "fleet/sql_quote.h"
#include "report/finding_text.h"

namespace tlparse {
namespace {

// Text for XML 1.0, which has no way to write control characters.
std::string Xml(std::string_view text) {
  std::string result;
  for (const char c : Printable(text)) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

Result<void> WriteJunit(const CheckAnswer& answer, const std::string& path) {
  std::size_t failures = 0;
  std::string cases;
  for (const CheckRule& rule : answer.rules) {
    cases += fmt::format("  <testcase classname=\"tlparse.check\" name=\"{}\">", Xml(rule.name));
    if (!rule.is_ok) {
      ++failures;
      cases += fmt::format("\n    <failure message=\"{}\">",
                           Xml(fmt::format("limit {}, actual {}", rule.limit, rule.actual)));
      for (const std::string& row : rule.rows) cases += Xml(row) + '\n';
      if (rule.left_out > 0) cases += fmt::format("and {} more\n", rule.left_out);
      cases += "</failure>\n  ";
    }
    cases += "</testcase>\n";
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
       << fmt::format("<testsuite name=\"tlparse check {}\" tests=\"{}\" failures=\"{}\">\n",
                      Xml(answer.run), answer.rules.size(), failures)
       << cases << "</testsuite>\n";
  file.close();
  if (!file) return Fail(ErrorCode::kIo, fmt::format("cannot write '{}'", path));
  return {};
}

// The table of the rules, and under it what violates them.
std::string CheckMarkdown(const CheckAnswer& answer) {
  std::string text = fmt::format("**{}: {}**\n\n| check | limit | actual | |\n|---|---|---|---|\n",
                                 MarkdownText(answer.run),
                                 answer.IsOk()         ? "within its budget"
                                 : answer.CannotTell() ? "unknown: not all of the input was read"
                                                       : "not within its budget");
  std::string rows;
  for (const CheckRule& rule : answer.rules) {
    text +=
        fmt::format("| {} | {} | {} | {} |\n", MarkdownText(rule.name), MarkdownText(rule.limit),
                    MarkdownText(rule.actual), rule.is_ok ? "ok" : "**failed**");
    if (rule.is_ok) continue;
    for (const std::string& row : rule.rows)
      rows += fmt::format("- {}: {}\n", MarkdownText(rule.name), MarkdownText(row));
    if (rule.left_out > 0)
      rows += fmt::format("- {}: and {} more\n", MarkdownText(rule.name), rule.left_out);
  }
  return rows.empty() ? text : text + "\n" + rows;
}

}  // namespace

template <>
struct FieldsOf<CheckRule> {
  using Of = CheckRule;
  static constexpr FieldList list{
      Field{"name", &Of::name},
      Field{"is_ok", &Of::is_ok},
      Field{"limit", &Of::limit},
      Field{"actual", &Of::actual},
      Field{"rows", &Of::rows, "what offends"},
      Field{"left_out", &Of::left_out},
  };
};

template <>
struct FieldsOf<CheckAnswer> {
  using Of = CheckAnswer;
  static constexpr FieldList list{
      Field{"run", &Of::run},
      Field{"is_ok", &Of::IsOk},
      Field{"rules", &Of::rules},
  };
};

std::string CheckSchema() { return SchemaOf<CheckAnswer>("tlparse check --json"); }

namespace {

// The first word of each line that is neither empty nor a comment.
Result<std::vector<std::string>> ReadKnown(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(ErrorCode::kNotFound, fmt::format("cannot read '{}'", path));
  std::vector<std::string> ids;
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    ids.push_back(line.substr(begin, line.find_first_of(" \t\r", begin) - begin));
  }
  return ids;
}

Result<CheckCounts> CountsOfRun(const std::string& name) {
  ASSIGN_OR_RETURN(AnswerInput other, OpenAnswerInput(name));
  return CountForCheck(other.database, other.run);
}

constexpr std::string_view kFleetPrefix = "fleet:";

// `name`: "JOB" or "JOB~7d". The run that is checked is not compared with itself.
Result<CheckCounts> CountsOfFleet(Database& database, const std::string& run,
                                  const std::string& name, const FleetArguments& arguments) {
  const std::size_t tilde = name.rfind('~');
  FleetQuestion question;
  question.job = name.substr(0, tilde);
  const std::string since = tilde == std::string::npos ? "7d" : name.substr(tilde + 1);
  const std::optional<std::int64_t> since_s = ParseSince(since);
  if (question.job.empty() || !since_s)
    return Fail(
        ErrorCode::kUsage,
        fmt::format("--against fleet:{}: give a job and a time, like fleet:nightly~7d", name));
  question.since_day = std::max<std::int64_t>(0, *since_s / 86400);
  ASSIGN_OR_RETURN(const std::vector<ClickHouseOptions> servers, arguments.Servers());
  ASSIGN_OR_RETURN(FleetReader reader, FleetReader::Make(servers));
  ASSIGN_OR_RETURN(const RunSelection selection, SelectRun(database, run, {}));
  ASSIGN_OR_RETURN(const FleetCounts worst,
                   FleetWorstCounts(reader, question, ToText(selection.uuid)));
  if (worst.run_count == 0)
    return Fail(ErrorCode::kNotFound, fmt::format("no other run of job '{}' was pushed since {}",
                                                  question.job, DayText(question.since_day)));
  return worst.counts;
}

}  // namespace

void PrintCheck(const CheckAnswer& answer) {
  PrintHeading(fmt::format("run {}", answer.run));
  Table table({{"check"}, {"limit"}, {"actual"}, {"result"}});
  for (const CheckRule& rule : answer.rules)
    table.Add({rule.name, rule.limit, rule.actual, rule.is_ok ? "ok" : "FAILED"});
  table.Print();
  for (const CheckRule& rule : answer.rules) {
    if (rule.is_ok) continue;
    PrintHeading(rule.name);
    for (const std::string& row : rule.rows) PrintWrapped(row, 4, 6);
    if (rule.left_out > 0) PrintWrapped(fmt::format("and {} more", rule.left_out), 4, 6);
  }
}

void AddBudgetArguments(Arguments& app, CheckBudget& budget) {
  app.Add("--max-recompiles", budget.max_recompiles,
          "recompiles of a rank; attempts that the recompile limit refused count");
  app.Add("--max-graph-breaks", budget.max_graph_breaks, "graph breaks of a rank");
  app.Add("--max-cache-misses", budget.max_cache_misses,
          "cache misses of a rank, in all layers; guard misses count");
  app.Add("--min-cache-hit-rate", budget.min_cache_hit_rate,
          "hits of all lookups that hit or missed, 0 to 1")
      .Between(0.0, 1.0);
  app.Add("--max-compile-seconds", budget.max_compile_seconds, "compile time of a rank");
  app.Flag("--no-failures", budget.no_failures, "no compile fails, and no log ends inside one");
  app.Flag("--no-divergence", budget.no_divergence,
           "ranks do not differ, but for expected differences");
  app.Flag("--notes-are-divergence", budget.notes_are_divergence,
           "with --no-divergence: expected differences count as well");
}

bool HasLimit(const CheckBudget& budget) {
  return budget.max_recompiles || budget.max_graph_breaks || budget.max_cache_misses ||
         budget.min_cache_hit_rate || budget.max_compile_seconds || budget.no_failures ||
         budget.no_divergence;
}

namespace {

void PrintAs(const CheckAnswer& answer, bool is_json, bool is_markdown) {
  if (is_json) {
    PrintJson(ToJson(answer));
  } else if (is_markdown) {
    std::fputs(CheckMarkdown(answer).c_str(), stdout);
  } else {
    PrintCheck(answer);
  }
}

}  // namespace

int RunCheckCommand(std::span<const std::string> arguments) {
  Arguments app(
      "Checks budgets for CI: exits with 1 and names the violations if the run exceeds them, with "
      "2 "
      "if it does not, but not all of the input could be read. "
      "Counts are those of the worst rank.",
      "check");
  AnswerArguments common;
  CheckBudget budget;
  FleetArguments fleet;
  std::optional<std::string> against, junit, known;
  bool is_markdown = false;
  AddAnswerArguments(app, common);
  app.Add("--run", budget.run, "the run of this name (default: the latest)");
  app.Add("--launch", budget.launch, "this launch (1 is the first; default: the latest)")
      .Positive();
  AddBudgetArguments(app, budget);
  app.Add("--against", against,
          "no more recompiles, graph breaks, cache misses and failures than this run (database, "
          "DB:run or logs), or with fleet:JOB~7d than in any run of the job in the last 7 days "
          "(needs --url)");
  app.Add("--known", known,
          "a file of ids of findings, one a line (the first word; # begins a comment), that "
          "--no-failures and --no-divergence accept");
  app.Add("--junit", junit, "write the result to this file as JUnit XML");
  app.Flag("--markdown", is_markdown, "Markdown, for a comment of a forge");
  fleet.timeout_s = 30;
  fleet.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAskedDatabase(common.database);
  if (!database) return ReportError(database.error());
  if (!HasLimit(budget) && !against)
    return ReportError({ErrorCode::kUsage,
                        "check needs a budget, e.g. --no-failures; see 'tlparse check --help'"});
  if (known) {
    Result<std::vector<std::string>> ids = ReadKnown(*known);
    if (!ids) return ReportError(ids.error());
    budget.known_findings = std::move(*ids);
  }
  Result<CheckAnswer> answer = RunCheck(*database, budget);
  if (!answer) return ReportError(answer.error());
  if (against) {
    const bool is_fleet = against->starts_with(kFleetPrefix);
    const Result<CheckCounts> limits =
        is_fleet ? CountsOfFleet(*database, budget.run, against->substr(kFleetPrefix.size()), fleet)
                 : CountsOfRun(*against);
    if (!limits) return ReportFleetError(limits.error());
    Result<std::vector<CheckRule>> rules = CheckAgainst(
        *database, budget, *limits, is_fleet ? CountedBy::kProcess : CountedBy::kParticipant);
    if (!rules) return ReportError(rules.error());
    answer->rules.insert(answer->rules.end(), rules->begin(), rules->end());
  }
  if (junit) {
    if (Result<void> written = WriteJunit(*answer, *junit); !written)
      return ReportError(written.error());
  }
  PrintAs(*answer, common.json, is_markdown);
  // A budget is not kept by what could not be read.
  return answer->IsOk() ? kExitDone : answer->CannotTell() ? kExitUsage : kExitNo;
}

}  // namespace tlparse
