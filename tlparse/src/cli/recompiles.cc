// tlparse recompiles <db>: why frames were compiled again, as chains from the first compile on.
#include <fmt/format.h>

#include "artifacts/common/compile_status.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "facts/compiles/advice.h"

namespace tlparse {

namespace {

constexpr char kRecompilesQuery[] =
    "SELECT r.name AS run, c.rank, c.label, "
    "c.function, c.file, c.line, m.prior_label, m.ordinal, m.guard, m.reason, m.user_file, "
    "m.user_line, c.status, m.compile_id, m.prior_compile_id, m.record_id, n.ordinal AS launch "
    "FROM recompile m JOIN compile c ON c.id = m.compile_id JOIN process p ON p.id = c.process_id "
    "JOIN log_file f ON f.id = p.log_file_id JOIN run r ON r.id = f.run_id "
    "LEFT JOIN launch n ON n.id = p.launch_id WHERE (?1 IS NULL OR c.rank = ?1) "
    "AND (?2 IS NULL OR r.id = ?2) AND (?3 IS NULL OR n.ordinal = ?3) ORDER BY f.run_id, "
    "c.rank, c.process_id, c.frame_id, c.frame_compile_id, m.record_id, m.ordinal";

std::string GuardInWords(const Statement& row) {
  const RecompileReason reason = ParseRecompileReason(row.Text(8), row.Text(9), "", row.Int(11));
  return reason.text.empty() ? CellText(row, 9) : reason.text;
}

Result<void> AddGuardInWords(Database&, const Statement& row, JsonWriter& json) {
  json.Key("guard_in_words").String(GuardInWords(row));
  return {};
}

Result<void> PrintRecompiles(Database&, Statement& row, const RunFilter& runs) {
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
    runs.AddOfLaunch(
        table, CellText(row, 0), CellText(row, 16),
        {CellText(row, 1), CellText(row, 2), CellText(row, 3), CellText(row, 6), GuardInWords(row),
         where, std::string(InWords(CompileStatusFrom(row.Text(12))))});
  }
  if (table.empty()) {
    std::puts("no recompiles");
  } else {
    table.Print();
  }
  return {};
}

}  // namespace

int RunRecompiles(std::span<const std::string> arguments) {
  return RunRowsAnswer({"recompiles",
                        "Why frames were compiled again: each earlier compile that was tried and "
                        "the guard that failed.",
                        kRecompilesQuery, "recompiles", &PrintRecompiles, &AddGuardInWords},
                       arguments);
}

}  // namespace tlparse
