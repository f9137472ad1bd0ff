#include "answers/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "artifacts/common/text/recompile_limit.h"
#include "base/plural.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/job/read_transaction.h"
#include "facts/ranks/ranks.h"
#include "facts/text/shorten.h"
#include "findings/context.h"
#include "queries/answers/check/check.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

// Things that count against a budget, by participant or by process.
struct Tally {
  struct Group {
    RankIndex participant = 0;
    std::vector<std::string> rows = {};
    std::vector<std::int64_t> compiles = {};  // of the rows
    std::size_t refused = 0;                  // of these, attempts that the recompile limit refused
  };
  std::vector<Group> groups;

  // The one that has most; nullptr: there is none.
  const Group* Worst() const {
    const auto worst = std::max_element(
        groups.begin(), groups.end(),
        [](const Group& a, const Group& b) { return a.rows.size() < b.rows.size(); });
    return worst == groups.end() ? nullptr : &*worst;
  }
  std::int64_t WorstCount() const {
    const Group* const worst = Worst();
    return worst == nullptr ? 0 : static_cast<std::int64_t>(worst->rows.size());
  }
};

std::string Who(const Job& job, std::size_t participant) {
  const JobParticipant& one = job.participants()[participant];
  return one.rank ? "rank " + one.name : one.name;
}

std::string CompileTitle(const Job& job, const JobCompile& compile) {
  return fmt::format("{} {}", job.string(compile.label_id),
                     compile.function_id < 0 ? std::string() : job.string(compile.function_id));
}

std::string TextOfRow(const AnyRow& row) { return std::string(row.Text("text")); }

// Rows of `sql`: compile_id, record_id and what `text_of` makes a text of.
Result<Tally> Count(Database& database, const Job& job, CountedBy by, const std::string& sql,
                    const std::function<std::string(const AnyRow&)>& text_of = &TextOfRow) {
  Tally tally;
  tally.groups.resize(by == CountedBy::kParticipant ? job.participants().size() : 0);
  for (std::size_t i = 0; i < tally.groups.size(); ++i)
    tally.groups[i].participant = static_cast<RankIndex>(i);
  std::map<std::int64_t, std::size_t> group_of_process;
  const std::string counted = "SELECT x.*, c.process_id FROM (" + sql +
                              ") x JOIN compile c ON c.id = x.compile_id WHERE " +
                              job.InLogs("x.record_id") + " ORDER BY x.record_id";
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, counted)) {
    const JobCompile* compile = job.FindCompile(row.Int("compile_id"));
    if (compile == nullptr) continue;
    auto group = static_cast<std::size_t>(compile->participant);
    if (by == CountedBy::kProcess) {
      const auto [found, is_new] =
          group_of_process.try_emplace(row.Int("process_id"), tally.groups.size());
      if (is_new) tally.groups.push_back({.participant = compile->participant});
      group = found->second;
    }
    tally.groups[group].rows.push_back(
        fmt::format("{}: {}", CompileTitle(job, *compile), Shorten(text_of(row), 300)));
    tally.groups[group].compiles.push_back(compile->id);
  }
  return tally;
}

// What the limit refused would have been a recompile.
Result<Tally> CountRecompiles(Database& database, const Job& job, CountedBy by) {
  std::set<std::int64_t> refused;
  FOR_EACH_ROW(const CountedException& row,
               Query<CountedException>(database, {.in_logs = job.InLogs("f.record_id")})) {
    if (row.compile_id && IsRecompileLimit(row.type, row.reason)) refused.insert(*row.compile_id);
  }
  const auto text_of = [&](const AnyRow& row) {
    FailedEntry newest;
    newest.label = row.Text("prior");
    newest.reason = ParseRecompileReason(row.Text("guard"), row.Text("text"), row.Text("file"),
                                         row.Int("line"));
    return (refused.contains(row.Int("compile_id")) ? "refused at the recompile limit, " : "") +
           FailedEntriesText({newest}, "after ");
  };
  ASSIGN_OR_RETURN(
      Tally tally,
      Count(database, job, by,
            "SELECT m.compile_id, r.text, m.record_id, coalesce(g.text, r.text) AS guard, "
            "f.text AS file, m.user_line AS line, "
            "p.text || iif(z.generation > 0, '#' || (z.generation + 1), '') AS prior "
            "FROM recompile_row m LEFT JOIN text_row r ON r.id = m.reason_id "
            "LEFT JOIN text_row g ON g.id = m.guard_id "
            "LEFT JOIN text_row f ON f.id = m.user_file_id "
            "LEFT JOIN text_row p ON p.id = m.prior_label_id "
            "LEFT JOIN compile z ON z.id = m.prior_compile_id WHERE m.ordinal = 0",
            text_of));
  for (Tally::Group& group : tally.groups) {
    group.refused = static_cast<std::size_t>(
        std::count_if(group.compiles.begin(), group.compiles.end(),
                      [&](std::int64_t id) { return refused.contains(id); }));
  }
  return tally;
}
Result<Tally> CountGraphBreaks(Database& database, const Job& job, CountedBy by) {
  return Count(database, job, by,
               "SELECT g.compile_id, r.text, g.record_id "
               "FROM graph_break_row g LEFT JOIN text_row r ON r.id = g.reason_id");
}
Result<Tally> CountCacheMisses(Database& database, const Job& job, CountedBy by) {
  return Count(
      database, job, by,
      "SELECT e.compile_id, l.text || ' ' || replace(s.name, "
      "'_', ' ') || ' of ' || coalesce(k.key, 'no key') AS text, e.record_id "
      "FROM cache_event_row e JOIN cache_state s ON s.id = e.state "
      "LEFT JOIN text_row l ON l.id = e.layer_id LEFT JOIN cache_key_row k ON k.id = e.key_id "
      "WHERE s.is_miss");
}
// A restart is no failure: the compile continues.
Result<Tally> CountFailures(Database& database, const Job& job, CountedBy by) {
  return Count(database, job, by,
               "SELECT f.compile_id, k.text || ' ' || coalesce(t.text, "
               "'') || ': ' || coalesce(r.text, '') AS text, f.record_id FROM failure_row f "
               "LEFT JOIN text_row k ON k.id = f.kind_id LEFT JOIN text_row t ON t.id = f.type_id "
               "LEFT JOIN text_row r ON r.id = f.reason_id WHERE k.text <> 'restart'");
}

constexpr std::size_t kMostRows = 50;

// "7", "7 and 1 refused (rank 2)"
std::string CountText(const Job& job, const Tally& tally) {
  const Tally::Group* const worst = tally.Worst();
  if (worst == nullptr) return "0";
  std::string text = std::to_string(worst->rows.size() - worst->refused);
  if (worst->refused > 0) text += fmt::format(" and {} refused", worst->refused);
  if (job.HasSeveral() && !worst->rows.empty())
    text += fmt::format(" ({})", Who(job, static_cast<std::size_t>(worst->participant)));
  return text;
}

CheckRule MakeRule(std::string name, bool is_ok, std::string limit, std::string actual,
                   const std::vector<std::string>& rows) {
  CheckRule rule;
  rule.name = std::move(name);
  rule.is_ok = is_ok;
  rule.limit = std::move(limit);
  rule.actual = std::move(actual);
  if (is_ok) return rule;
  rule.rows.assign(rows.begin(),
                   rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kMostRows)));
  rule.left_out = rows.size() - rule.rows.size();
  return rule;
}

CheckRule MaximumRule(const char* name, const Job& job, const Tally& tally, std::int64_t limit) {
  const Tally::Group* const worst = tally.Worst();
  return MakeRule(name, tally.WorstCount() <= limit, std::to_string(limit), CountText(job, tally),
                  worst == nullptr ? std::vector<std::string>() : worst->rows);
}

Result<CheckRule> HitRateRule(Database& database, const Job& job, double limit) {
  std::int64_t hits = 0, lookups = 0;
  FOR_EACH_ROW(const CountedLookup& row,
               Query<CountedLookup>(database, {.in_logs = job.InLogs("e.record_id")})) {
    if (!row.compile_id || job.FindCompile(*row.compile_id) == nullptr) continue;
    ++lookups;
    if (row.is_hit) ++hits;
  }
  const double rate = lookups == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(lookups);
  return MakeRule(
      "min-cache-hit-rate", rate >= limit, fmt::format("{:.3f}", limit),
      fmt::format("{:.3f}", rate),
      {fmt::format("{} in {}", tlparse::Count(hits, "hit"), tlparse::Count(lookups, "lookup"))});
}

CheckRule CompileSecondsRule(const Job& job, double limit) {
  // What a log does not have may only add to the sums.
  std::vector<double> seconds(job.participants().size());
  std::size_t unknown_count = 0;
  for (const JobCompile& compile : job.compiles()) {
    seconds[static_cast<std::size_t>(compile.participant)] += compile.Seconds().value_or(0);
    if (compile.LacksTime()) ++unknown_count;
  }
  const auto worst =
      static_cast<RankIndex>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
  std::vector<std::pair<double, std::string>> parts;
  for (const JobCompile& compile : job.compiles()) {
    if (compile.participant != worst || (!compile.Seconds() && !compile.LacksTime())) continue;
    parts.emplace_back(-compile.Seconds().value_or(0),
                       compile.Seconds() ? fmt::format("{}: {:.3f} s", CompileTitle(job, compile),
                                                       *compile.Seconds())
                                         : CompileTitle(job, compile) + ": time not in the log");
  }
  std::stable_sort(parts.begin(), parts.end());
  std::vector<std::string> rows;
  for (auto& [key, text] : parts) rows.push_back(std::move(text));
  const double sum = seconds[static_cast<std::size_t>(worst)];
  std::string actual = fmt::format("{}{:.3f}", unknown_count > 0 ? "at least " : "", sum);
  if (job.HasSeveral()) actual += fmt::format(" ({})", Who(job, static_cast<std::size_t>(worst)));
  if (unknown_count > 0)
    actual += fmt::format("; {} compile{} without a time in the log", unknown_count,
                          PluralS(unknown_count));
  return MakeRule("max-compile-seconds", sum <= limit, fmt::format("{:.3f}", limit),
                  std::move(actual), rows);
}

constexpr char kInputsRule[] = "inputs";

// What the other rules say they say of what was read. Nothing: all inputs were read whole.
Result<std::optional<CheckRule>> InputsRule(Database& database, const Job& job) {
  std::vector<std::string> rows;
  std::string last_path;
  std::size_t files = 0;
  FOR_EACH_ROW(const InputNotRead& row,
               Query<InputNotRead>(database, {.run_id = job.run_id(), .launch = job.launch()})) {
    if (std::exchange(last_path, row.path) != row.path) ++files;
    rows.push_back(fmt::format("{}: {}: {}{}", row.path, row.code, row.message,
                               row.count > 1 ? fmt::format(" (×{})", row.count) : ""));
  }
  if (rows.empty()) return std::optional<CheckRule>();
  return std::optional(MakeRule(kInputsRule, false, "read whole",
                                fmt::format("{} file{} not", files, files == 1 ? " is" : "s are"),
                                rows));
}

bool FailsNoFailures(const Finding& finding) {
  // A budget counts what the program has caught, but for a test of it.
  if (finding.severity == FindingSeverity::kNote)
    return finding.kind == FindingKind::kCompileFailed && !finding.is_asked_for;
  // With fullgraph=True a compile at the limit fails; else the function runs on, eagerly.
  if (finding.kind == FindingKind::kRecompileLimit)
    return finding.severity == FindingSeverity::kError;
  return finding.kind == FindingKind::kCompileFailed || finding.kind == FindingKind::kCrashed ||
         finding.kind == FindingKind::kStoppedFirst;
}
bool FailsNoDivergence(const Finding& finding) {
  const FindingKind kind = finding.kind;
  // Where only some ranks reached the limit, that they differ is among the evidence.
  if (kind == FindingKind::kRecompileLimit)
    return std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const Finding& one) {
      return one.severity != FindingSeverity::kNote && FailsNoDivergence(one);
    });
  return Name(kind).ends_with("_divergence") || kind == FindingKind::kExtraCompile ||
         kind == FindingKind::kMissingCompile || kind == FindingKind::kOneKeyTwoCodes;
}

// A rule that no finding of a kind may break. `most`: the least severe that still counts.
CheckRule FindingsRule(const char* name, const std::vector<Finding>& findings,
                       const CheckBudget& budget, bool (*matches)(const Finding&),
                       FindingSeverity least, const std::vector<std::string>& notes) {
  std::vector<std::string> rows;
  std::size_t known = 0;
  for (const Finding& finding : findings) {
    if (!matches(finding) || finding.severity > least) continue;
    const bool is_known = std::find(budget.known_findings.begin(), budget.known_findings.end(),
                                    finding.id) != budget.known_findings.end();
    if (is_known) {
      ++known;
    } else {
      rows.push_back(fmt::format("{} [{}]", finding.title, finding.id));
    }
  }
  rows.insert(rows.end(), notes.begin(), notes.end());
  return MakeRule(
      name, rows.empty(), "0",
      known == 0 ? std::to_string(rows.size()) : fmt::format("{} and {} known", rows.size(), known),
      rows);
}

Result<void> AddFindingRules(Database& database, const CheckBudget& budget, CheckAnswer& answer) {
  RanksOptions options;
  options.run = budget.run;
  options.launch = budget.launch;
  ASSIGN_OR_RETURN(const RanksAnswer ranks, AnalyzeRanks(database, options));
  FindingsOptions findings_options;
  findings_options.run = budget.run;
  findings_options.launch = ranks.job().launch();
  ASSIGN_OR_RETURN(const std::vector<Finding> findings,
                   FindFindings(database, findings_options, ranks));
  if (budget.no_failures)
    answer.rules.push_back(FindingsRule("no-failures", findings, budget, &FailsNoFailures,
                                        FindingSeverity::kNote, {}));
  if (budget.no_divergence)
    answer.rules.push_back(FindingsRule(
        "no-divergence", findings, budget, &FailsNoDivergence,
        budget.notes_are_divergence ? FindingSeverity::kNote : FindingSeverity::kWarning,
        budget.notes_are_divergence ? ranks.notes : std::vector<std::string>()));
  return {};
}

}  // namespace

bool CheckAnswer::IsOk() const {
  return std::all_of(rules.begin(), rules.end(), [](const CheckRule& rule) { return rule.is_ok; });
}

bool CheckAnswer::CannotTell() const {
  return !IsOk() && std::all_of(rules.begin(), rules.end(), [](const CheckRule& rule) {
    return rule.is_ok || rule.name == kInputsRule;
  });
}

Result<CheckAnswer> RunCheck(Database& database, const CheckBudget& budget) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  CheckAnswer answer;
  ASSIGN_OR_RETURN(const Job job, Job::Load(database, budget.run, budget.launch));
  answer.run = job.run_name();
  if (budget.max_recompiles) {
    ASSIGN_OR_RETURN(const Tally tally, CountRecompiles(database, job, CountedBy::kParticipant));
    answer.rules.push_back(MaximumRule("max-recompiles", job, tally, *budget.max_recompiles));
  }
  if (budget.max_graph_breaks) {
    ASSIGN_OR_RETURN(const Tally tally, CountGraphBreaks(database, job, CountedBy::kParticipant));
    answer.rules.push_back(MaximumRule("max-graph-breaks", job, tally, *budget.max_graph_breaks));
  }
  if (budget.max_cache_misses) {
    ASSIGN_OR_RETURN(const Tally tally, CountCacheMisses(database, job, CountedBy::kParticipant));
    answer.rules.push_back(MaximumRule("max-cache-misses", job, tally, *budget.max_cache_misses));
  }
  if (budget.min_cache_hit_rate) {
    ASSIGN_OR_RETURN(CheckRule rule, HitRateRule(database, job, *budget.min_cache_hit_rate));
    answer.rules.push_back(std::move(rule));
  }
  if (budget.max_compile_seconds)
    answer.rules.push_back(CompileSecondsRule(job, *budget.max_compile_seconds));
  if (budget.no_failures || budget.no_divergence)
    RETURN_IF_ERROR(AddFindingRules(database, budget, answer));
  ASSIGN_OR_RETURN(std::optional<CheckRule> inputs, InputsRule(database, job));
  if (inputs) answer.rules.push_back(std::move(*inputs));
  return answer;
}

namespace {
struct AgainstRule {
  const char* name;
  Result<Tally> (*count)(Database&, const Job&, CountedBy);
  std::int64_t CheckCounts::*value;
};
constexpr AgainstRule kAgainstRules[] = {
    {"against: recompiles", &CountRecompiles, &CheckCounts::recompiles},
    {"against: graph breaks", &CountGraphBreaks, &CheckCounts::graph_breaks},
    {"against: cache misses", &CountCacheMisses, &CheckCounts::cache_misses},
    {"against: failures", &CountFailures, &CheckCounts::failures}};
}  // namespace

Result<CheckCounts> CountForCheck(Database& database, const std::string& run) {
  ASSIGN_OR_RETURN(const Job job, Job::Load(database, run));
  CheckCounts counts;
  for (const AgainstRule& rule : kAgainstRules) {
    ASSIGN_OR_RETURN(const Tally tally, rule.count(database, job, CountedBy::kParticipant));
    counts.*rule.value = tally.WorstCount();
  }
  return counts;
}

Result<std::vector<CheckRule>> CheckAgainst(Database& database, const CheckBudget& budget,
                                            const CheckCounts& limits, CountedBy by) {
  ASSIGN_OR_RETURN(const Job job, Job::Load(database, budget.run, budget.launch));
  std::vector<CheckRule> rules;
  for (const AgainstRule& rule : kAgainstRules) {
    ASSIGN_OR_RETURN(const Tally tally, rule.count(database, job, by));
    rules.push_back(MaximumRule(rule.name, job, tally, limits.*rule.value));
  }
  return rules;
}

}  // namespace tlparse
