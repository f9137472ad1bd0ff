// tlparse recompiles <db>: why frames were compiled again, as chains from the first compile on.
#include <fmt/format.h>

#include "artifacts/common/compile_status.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "facts/compiles/advice.h"

namespace tlparse {

namespace {

// Of structured traces, and of text of TORCH_LOGS whose process has none.
constexpr char kRecompilesQuery[] =
    "SELECT run, rank, label, function, file, line, prior_label, ordinal, guard, reason, "
    "user_file, user_line, status, compile_id, prior_compile_id, record_id, launch, source FROM ("
    "SELECT r.name AS run, c.rank, c.label, "
    "c.function, c.file, c.line, m.prior_label, m.ordinal, m.guard, m.reason, m.user_file, "
    "m.user_line, c.status, m.compile_id, m.prior_compile_id, m.record_id, n.ordinal AS launch, "
    "'structured_trace' AS source, f.run_id, c.process_id, c.frame_id, c.frame_compile_id "
    "FROM recompile m JOIN compile c ON c.id = m.compile_id JOIN process p ON p.id = c.process_id "
    "JOIN log_file f ON f.id = p.log_file_id JOIN run r ON r.id = f.run_id "
    "LEFT JOIN launch n ON n.id = p.launch_id WHERE (?1 IS NULL OR c.rank = ?1) "
    "AND (?2 IS NULL OR r.id = ?2) AND (?3 IS NULL OR n.ordinal = ?3) "
    "UNION ALL SELECT r.name, t.rank, t.label, t.function, t.file, t.function_line, t.prior_label, "
    "0, t.guard, t.reason, NULL, NULL, CASE WHEN t.is_refused THEN 'refused' END, NULL, NULL, "
    "t.line, NULL, 'torch_logs', r.id, t.profile_id, 0, 0 FROM torch_log_recompile t "
    "JOIN profile p ON p.id = t.profile_id JOIN run r ON r.id = p.run_id "
    "WHERE t.process_id IS NULL AND (?1 IS NULL OR t.rank = ?1) AND (?2 IS NULL OR r.id = ?2) "
    "AND ?3 IS NULL) ORDER BY run_id, rank, process_id, frame_id, frame_compile_id, record_id, "
    "ordinal";

constexpr char kOfTorchLogs[] =
    "its text of TORCH_LOGS has no line of 'recompiles' (TORCH_LOGS=recompiles writes them)";

std::string StatusOf(std::string_view status) {
  if (status == "refused") return "refused at the recompile limit";
  return status.empty() ? std::string() : std::string(InWords(CompileStatusFrom(status)));
}

std::string GuardInWords(const Statement& row) {
  const RecompileReason reason = ParseRecompileReason(row.Text(8), row.Text(9), "", row.Int(11));
  return reason.text.empty() ? CellText(row, 9) : reason.text;
}

Result<void> AddGuardInWords(Database&, const Statement& row, JsonWriter& json) {
  json.Key("guard_in_words").String(GuardInWords(row));
  return {};
}

Result<void> PrintRecompiles(Database& database, Statement& row, const RunFilter& runs) {
  Table table = runs.MakeTableOfLaunches({{"rank"},
                                          {"compile"},
                                          {"function"},
                                          {"after"},
                                          {"guard that failed"},
                                          {"where", Table::Align::kLeft, 0, true},
                                          {"status"}});
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, row.Step());
    if (!has_row) break;
    const std::string where =
        row.IsNull(10) ? ""
                       : fmt::format("{}:{}", WholePath(row.Text(10), row.Text(4)), row.Int(11));
    runs.AddOfLaunch(table, CellText(row, 0), CellText(row, 16),
                     {CellText(row, 1), CellText(row, 2), CellText(row, 3), CellText(row, 6),
                      GuardInWords(row), where, StatusOf(row.Text(12))});
  }
  if (table.empty()) {
    ASSIGN_OR_RETURN(const std::string why_none, runs.WhyNone(database, kOfTorchLogs));
    std::puts(why_none.empty() ? "no recompiles" : why_none.c_str());
  } else {
    table.Print();
  }
  return {};
}

}  // namespace

int RunRecompiles(std::span<const std::string> arguments) {
  return RunRowsAnswer(
      {"recompiles",
       "Why frames were compiled again: each earlier compile that was tried and "
       "the guard that failed.",
       kRecompilesQuery, "recompiles", &PrintRecompiles, &AddGuardInWords, kOfTorchLogs},
      arguments);
}

}  // namespace tlparse
