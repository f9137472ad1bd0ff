#include "report/viewer/finding_compiles.h"

#include <set>
#include <string_view>

#include "queries/report/viewer/finding_compiles.h"

namespace tlparse {

Result<std::vector<std::int64_t>> FindingCompiles(Database& database, std::int64_t run_id,
                                                  const Finding& finding) {
  std::set<std::int64_t> ids, processes;
  if (!finding.query.empty()) {
    ASSIGN_OR_RETURN(Statement rows, database.Prepare(finding.query));
    const auto column_of = [&rows](std::string_view name) {
      for (int column = 0; column < rows.column_count(); ++column) {
        if (rows.ColumnName(column) == name) return column;
      }
      return -1;
    };
    const int compile = column_of("compile_id"), process = column_of("process_id");
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, rows.Step());
      if (!has_row) break;
      if (compile >= 0 && !rows.IsNull(compile)) ids.insert(rows.Int(compile));
      if (process >= 0 && !rows.IsNull(process)) processes.insert(rows.Int(process));
    }
  }
  std::vector<std::int64_t> compiles;
  if (ids.empty() && finding.compiles.empty()) return compiles;
  FOR_EACH_ROW(
      const CompileOfFinding& row,
      Query<CompileOfFinding>(
          database, {.run_id = run_id,
                     .launch = finding.launch,
                     .ids = std::vector<std::int64_t>(ids.begin(), ids.end()),
                     .processes = std::vector<std::int64_t>(processes.begin(), processes.end()),
                     .ranks = finding.ranks,
                     .titles = finding.compiles})) {
    compiles.push_back(row.id);
  }
  return compiles;
}

}  // namespace tlparse
