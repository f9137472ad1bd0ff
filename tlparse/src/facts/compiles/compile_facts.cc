#include "facts/compiles/compile_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "facts/compiles/advice.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/text/guard_text.h"

namespace tlparse {
namespace {

// What is asked of every compile; each question is prepared once, as the compiles may be thousands.
class Questions {
 public:
  explicit Questions(Database& database) : database_(database) {}
  Database& database() { return database_; }

  // Runs `sql`, a literal, with one parameter and gives each row to `take`.
  template <typename Take>
  Result<void> ForEachRow(const char* sql, std::int64_t parameter, const Take& take) {
    auto known = prepared_.find(sql);
    if (known == prepared_.end()) {
      ASSIGN_OR_RETURN(Statement rows, database_.Prepare(sql));
      known = prepared_.emplace(sql, std::move(rows)).first;
    }
    Statement& rows = known->second;
    rows.Bind(1, parameter);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, rows.Step());
      if (!has_row) return {};
      take(rows);
    }
  }

 private:
  Database& database_;
  std::unordered_map<const char*, Statement> prepared_;
};

Result<void> LoadEvents(Questions& questions, CompileFacts& facts) {
  ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries,
                   LoadFailedEntries(questions.database(), facts.id));
  for (const FailedEntry& entry : entries) {
    const std::string after = entry.label.empty() ? "" : "after " + entry.label + ": ";
    facts.recompile_reasons.push_back(
        {after + GuardKey(entry.reason.guard), after + entry.reason.text});
  }
  return questions.ForEachRow(
      "SELECT reason, user_file, user_line "
      "FROM graph_break WHERE compile_id = ? ORDER BY record_id",
      facts.id, [&](Statement& row) {
        facts.graph_breaks.push_back(
            {row.IsNull(1) ? "" : fmt::format("{}:{}", row.Text(1), row.Int(2)),
             CauseOfBreak(row.Text(0))});
      });
}

Result<void> LoadContents(Questions& questions, CompileFacts& facts) {
  RETURN_IF_ERROR(questions.ForEachRow(
      "SELECT normalized_expression, user_code, user_file, user_line, min(ordinal) FROM guard "
      "WHERE compile_id = ? AND kind NOT LIKE '%Manager' AND normalized_expression <> '' "
      "GROUP BY 1",
      facts.id, [&](Statement& row) {
        const GuardText shown = ReadableGuard(row.Text(0), row.Text(1), row.Text(2), row.Int(3));
        std::string key = GuardKey(row.Text(0));
        std::string subject(GuardSubject(key));
        if (!subject.empty()) subject += fmt::format("\n{}", row.Text(1));
        facts.guards.push_back({std::move(key), shown.Whole(), std::move(subject), shown.at});
      }));
  std::stable_sort(facts.guards.begin(), facts.guards.end(),
                   [](const FactText& a, const FactText& b) { return a.key < b.key; });
  RETURN_IF_ERROR(questions.ForEachRow(
      "SELECT k.name FROM graph g JOIN kernel_row k ON k.content_id = g.provenance_content_id "
      "WHERE g.compile_id = ?",
      facts.id, [&](Statement& row) { facts.kernels.emplace_back(row.Text(0)); }));
  std::sort(facts.kernels.begin(), facts.kernels.end());
  std::map<std::string, int> count;
  RETURN_IF_ERROR(questions.ForEachRow(
      "SELECT coalesce(g.direction, ''), c.hash, o.record_id "
      "FROM output_code_row o JOIN content_row c ON c.id = o.content_id "
      "LEFT JOIN graph g ON g.id = o.graph_id WHERE o.compile_id = ? ORDER BY o.record_id",
      facts.id, [&](Statement& row) {
        std::string title(row.Text(0));
        if (const int n = ++count[title]; n > 1)
          title += fmt::format("{}{}", title.empty() ? "" : " ", n);
        facts.codes.push_back({std::move(title), std::string(row.Text(1)), row.Int(2)});
      }));
  return questions.ForEachRow(
      "SELECT l.text, (SELECT name "
      "FROM cache_state WHERE id = e.state), coalesce(g.direction, ''), k.key, b.text, "
      "u.text,   coalesce(max(x.component_set_id), e.component_set_id), x.device_index, re.text "
      "FROM cache_event_row e LEFT JOIN cache_key_set_row x ON x.key_id = e.key_id   "
      "AND x.component_set_id = coalesce(e.component_set_id, x.component_set_id) "
      "LEFT JOIN text_row l ON l.id = e.layer_id LEFT JOIN cache_key_row k ON k.id = e.key_id "
      "LEFT JOIN text_row b ON b.id = e.bypass_reason_id "
      "LEFT JOIN text_row u ON u.id = e.guard_expression_id "
      "LEFT JOIN text_row re ON re.id = e.remote_error_id LEFT JOIN graph g ON g.id = e.graph_id "
      "WHERE e.compile_id = ? GROUP BY e.id ORDER BY e.record_id",
      facts.id, [&](Statement& row) {
        facts.lookups.push_back({std::string(row.Text(0)),
                                 std::string(row.Text(1)),
                                 std::string(row.Text(2)),
                                 std::string(row.Text(3)),
                                 std::string(row.Text(4)),
                                 std::string(row.Text(5)),
                                 std::string(row.Text(8)),
                                 {row.Int(6), row.OptionalInt(7)}});
      });
}

}  // namespace

Result<Phases> LoadPhases(Database& database, const JobCompile& compile) {
  ASSIGN_OR_RETURN(
      Statement* const kept,
      database.PrepareKept("SELECT sum(dynamo_us), sum(aot_autograd_us), "
                           "sum(inductor_us), sum(code_gen_us), sum(triton_us), sum(backward_us) "
                           "FROM compilation_metric_row WHERE compile_id = ?"));
  Statement& row = *kept;
  row.Bind(1, compile.id);
  Phases phases;
  if (compile.duration_us != 0)
    phases[kCompilePhases[0]] = compile.duration_us + compile.backward_duration_us;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, row.Step());
    if (!has_row) return phases;
    for (int i = 0; i < 6; ++i) {
      if (!row.IsNull(i)) phases[kCompilePhases[i + 1]] = row.Int(i);
    }
  }
}

Result<ParticipantFacts> LoadParticipantFacts(Database& database, const Job& job,
                                              RankIndex participant) {
  const JobParticipant& who = job.participants()[static_cast<std::size_t>(participant)];
  ParticipantFacts result;
  result.title = job.run_name();
  if (job.launch_count() > 1) result.title += fmt::format(", launch {}", job.launch());
  if (job.HasSeveral()) result.title += fmt::format(", {}{}", who.rank ? "rank " : "", who.name);
  result.torch_version = who.torch_version;
  result.python_version = who.python_version;
  Questions questions(database);
  for (const JobCompile& compile : job.compiles()) {
    if (compile.participant != participant) continue;
    CompileFacts facts;
    facts.id = compile.id;
    facts.label = job.string(compile.label_id);
    if (compile.generation > 0) facts.label += fmt::format("#{}", compile.generation + 1);
    if (compile.function_id >= 0) facts.function = job.string(compile.function_id);
    if (compile.file_id >= 0) facts.file = job.string(compile.file_id);
    facts.status = compile.status;
    facts.graph_content = compile.graph_content;
    if (compile.graph_content != 0) {
      RETURN_IF_ERROR(
          questions.ForEachRow("SELECT hash FROM content_row WHERE id = ?", compile.graph_content,
                               [&](Statement& row) { facts.graph_hash = row.Text(0); }));
    }
    ASSIGN_OR_RETURN(facts.phases_us, LoadPhases(database, compile));
    RETURN_IF_ERROR(LoadEvents(questions, facts));
    RETURN_IF_ERROR(LoadContents(questions, facts));
    RETURN_IF_ERROR(questions.ForEachRow(
        "SELECT r.payload_id FROM compile_record_row m JOIN record_row r ON r.id = m.record_id "
        "WHERE m.compile_id = ? AND r.name_id = (SELECT id "
        "FROM text_row WHERE text = 'torch._functorch.config') ORDER BY r.id LIMIT 1",
        compile.id, [&](Statement& row) { facts.functorch_config_payload = row.Int(0); }));
    result.compiles.push_back(std::move(facts));
  }
  return result;
}

}  // namespace tlparse
