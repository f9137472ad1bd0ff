#include "analysis/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "analysis/findings/context.h"
#include "analysis/ranks/ranks.h"
#include "analysis/read_transaction.h"

namespace tlparse {
namespace {

// Things that count against a budget, by participant.
struct Tally {
  std::vector<std::vector<std::string>> rows;  // by participant
  explicit Tally(std::size_t participants) : rows(participants) {}

  std::size_t Worst() const {
    std::size_t worst = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].size() > rows[worst].size()) worst = i;
    }
    return worst;
  }
  std::int64_t WorstCount() const {
    return rows.empty() ? 0 : static_cast<std::int64_t>(rows[Worst()].size());
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

// Rows of `sql`: compile id, text.
Result<Tally> Count(Database& database, const Job& job, const std::string& sql) {
  Tally tally(job.participants().size());
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(sql));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return tally;
    const JobCompile* compile = job.FindCompile(rows.Int(0));
    if (compile == nullptr) continue;
    tally.rows[static_cast<std::size_t>(compile->participant)].push_back(
        fmt::format("{}: {}", CompileTitle(job, *compile), Shorten(rows.Text(1), 300)));
  }
}

Result<Tally> CountRecompiles(Database& database, const Job& job) {
  return Count(database, job,
               "SELECT m.compile_id, r.text FROM recompile_row m LEFT JOIN text_row r ON r.id = "
               "m.reason_id WHERE m.ordinal = 0 "
               "ORDER BY m.record_id");
}
Result<Tally> CountGraphBreaks(Database& database, const Job& job) {
  return Count(database, job,
               "SELECT g.compile_id, r.text FROM graph_break_row g LEFT JOIN text_row r ON r.id = "
               "g.reason_id ORDER BY g.record_id");
}
Result<Tally> CountCacheMisses(Database& database, const Job& job) {
  return Count(
      database, job,
      "SELECT e.compile_id, l.text || ' ' || CASE e.state WHEN 1 THEN 'miss' WHEN 2 THEN 'guard "
      "miss' ELSE 'remote error' END || ' of ' || "
      "coalesce(k.key, 'no key') FROM cache_event_row e LEFT JOIN text_row l ON l.id = e.layer_id "
      "LEFT JOIN cache_key_row k ON k.id = e.key_id WHERE e.state IN (1, 2, 5) ORDER BY "
      "e.record_id");
}
// A restart is no failure: the compile continues.
Result<Tally> CountFailures(Database& database, const Job& job) {
  return Count(
      database, job,
      "SELECT f.compile_id, k.text || ' ' || coalesce(t.text, '') || ': ' || "
      "coalesce(r.text, '') FROM failure_row f "
      "LEFT JOIN text_row k ON k.id = f.kind_id LEFT JOIN text_row t ON t.id = f.type_id LEFT "
      "JOIN text_row r ON r.id = f.reason_id "
      "WHERE k.text <> 'restart' ORDER BY f.record_id");
}

constexpr std::size_t kMostRows = 50;

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
  const std::size_t worst = tally.Worst();
  const std::int64_t count = tally.WorstCount();
  return MakeRule(
      name, count <= limit, std::to_string(limit),
      job.HasSeveral() ? fmt::format("{} ({})", count, Who(job, worst)) : std::to_string(count),
      tally.rows.empty() ? std::vector<std::string>() : tally.rows[worst]);
}

Result<CheckRule> HitRateRule(Database& database, const Job& job, double limit) {
  std::int64_t hits = 0, lookups = 0;
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT compile_id, state FROM cache_event_row WHERE state IN (0, 1, 2, 5)"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    if (job.FindCompile(rows.Int(0)) == nullptr) continue;
    ++lookups;
    if (rows.Int(1) == 0) ++hits;
  }
  const double rate = lookups == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(lookups);
  return MakeRule("min-cache-hit-rate", rate >= limit, fmt::format("{:.3f}", limit),
                  fmt::format("{:.3f}", rate),
                  {fmt::format("{} hits in {} lookups", hits, lookups)});
}

CheckRule CompileSecondsRule(const Job& job, double limit) {
  std::vector<double> seconds(job.participants().size());
  for (const JobCompile& compile : job.compiles()) {
    seconds[static_cast<std::size_t>(compile.participant)] +=
        static_cast<double>(compile.duration_us + compile.backward_duration_us) / 1e6;
  }
  const auto worst =
      static_cast<RankIndex>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
  std::vector<std::pair<double, std::string>> parts;
  for (const JobCompile& compile : job.compiles()) {
    const double own =
        static_cast<double>(compile.duration_us + compile.backward_duration_us) / 1e6;
    if (compile.participant == worst)
      parts.emplace_back(-own, fmt::format("{}: {:.3f} s", CompileTitle(job, compile), own));
  }
  std::stable_sort(parts.begin(), parts.end());
  std::vector<std::string> rows;
  for (auto& [key, text] : parts) rows.push_back(std::move(text));
  const double actual = seconds[static_cast<std::size_t>(worst)];
  return MakeRule("max-compile-seconds", actual <= limit, fmt::format("{:.3f}", limit),
                  job.HasSeveral() ? fmt::format("{:.3f} ({})", actual,
                                                 Who(job, static_cast<std::size_t>(worst)))
                                   : fmt::format("{:.3f}", actual),
                  rows);
}

bool IsFailure(FindingKind kind) {
  return kind == FindingKind::kCompileFailed || kind == FindingKind::kStoppedFirst;
}
bool IsDivergence(FindingKind kind) {
  return Name(kind).ends_with("_divergence") || kind == FindingKind::kExtraCompile ||
         kind == FindingKind::kMissingCompile || kind == FindingKind::kOneKeyTwoCodes;
}

// A rule that no finding of a kind may break. `most`: the least severe that still counts.
CheckRule FindingsRule(const char* name, const std::vector<Finding>& findings,
                       const CheckBudget& budget, bool (*matches)(FindingKind),
                       FindingSeverity least, const std::vector<std::string>& notes) {
  std::vector<std::string> rows;
  std::size_t known = 0;
  for (const Finding& finding : findings) {
    if (!matches(finding.kind) || finding.severity > least) continue;
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
    answer.rules.push_back(
        FindingsRule("no-failures", findings, budget, &IsFailure, FindingSeverity::kWarning, {}));
  if (budget.no_divergence)
    answer.rules.push_back(FindingsRule(
        "no-divergence", findings, budget, &IsDivergence,
        budget.notes_are_divergence ? FindingSeverity::kNote : FindingSeverity::kWarning,
        budget.notes_are_divergence ? ranks.notes : std::vector<std::string>()));
  return {};
}

}  // namespace

bool CheckAnswer::IsOk() const {
  return std::all_of(rules.begin(), rules.end(), [](const CheckRule& rule) { return rule.is_ok; });
}

Result<CheckAnswer> RunCheck(Database& database, const CheckBudget& budget) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  CheckAnswer answer;
  ASSIGN_OR_RETURN(const Job job, Job::Load(database, budget.run, budget.launch));
  answer.run = job.run_name();
  if (budget.max_recompiles) {
    ASSIGN_OR_RETURN(const Tally tally, CountRecompiles(database, job));
    answer.rules.push_back(MaximumRule("max-recompiles", job, tally, *budget.max_recompiles));
  }
  if (budget.max_graph_breaks) {
    ASSIGN_OR_RETURN(const Tally tally, CountGraphBreaks(database, job));
    answer.rules.push_back(MaximumRule("max-graph-breaks", job, tally, *budget.max_graph_breaks));
  }
  if (budget.max_cache_misses) {
    ASSIGN_OR_RETURN(const Tally tally, CountCacheMisses(database, job));
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
  return answer;
}

namespace {
struct AgainstRule {
  const char* name;
  Result<Tally> (*count)(Database&, const Job&);
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
    ASSIGN_OR_RETURN(const Tally tally, rule.count(database, job));
    counts.*rule.value = tally.WorstCount();
  }
  return counts;
}

Result<std::vector<CheckRule>> CheckAgainst(Database& database, const std::string& run,
                                            const CheckCounts& limits) {
  ASSIGN_OR_RETURN(const Job job, Job::Load(database, run));
  std::vector<CheckRule> rules;
  for (const AgainstRule& rule : kAgainstRules) {
    ASSIGN_OR_RETURN(const Tally tally, rule.count(database, job));
    rules.push_back(MaximumRule(rule.name, job, tally, limits.*rule.value));
  }
  return rules;
}

}  // namespace tlparse
