// tlparse sql <db> "SELECT …": any query, read-only.
#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "facts/text/nearest_name.h"

namespace tlparse {

namespace {

Result<Statement> PrepareQuery(Database& database, const std::string& query) {
  sqlite3_stmt* tail_check = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v2(database.handle(), query.c_str(), -1, &tail_check, &tail) == SQLITE_OK) {
    const bool is_empty = tail_check == nullptr;
    sqlite3_finalize(tail_check);
    if (is_empty) return Fail(ErrorCode::kUsage, "the query is empty");
    if (std::string_view(tail).find_first_not_of(" \t\r\n;") != std::string_view::npos) {
      return Fail(ErrorCode::kUsage, "give one query at a time");
    }
  }
  return database.Prepare(query);
}

Result<void> PrintTable(Statement& statement) {
  std::vector<Table::Column> columns;
  for (int column = 0; column < statement.column_count(); ++column) {
    columns.push_back({std::string(statement.ColumnName(column)), Table::Align::kLeft});
  }
  Table table(columns);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) break;
    std::vector<std::string> cells;
    for (int column = 0; column < statement.column_count(); ++column)
      cells.push_back(CellText(statement, column));
    table.Add(std::move(cells));
  }
  if (!columns.empty()) table.Print();
  return {};
}

}  // namespace

int RunSql(std::span<const std::string> arguments) {
  Arguments app("Run a query. The tables and views are described in schemas/README.md.", "sql");
  AnswerArguments common;
  std::string query;
  AddAnswerArguments(app, common);
  app.Add("query", query, "one SQL query").Required();
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAskedDatabase(common.database);
  if (!database) return ReportError(database.error());
  Result<Statement> statement = PrepareQuery(*database, query);
  if (!statement)
    return ReportError(
        {statement.error().code, WithNearestName(*database, statement.error().message)});
  const Result<void> printed =
      common.json ? PrintRowsAsJson(std::move(*statement)) : PrintTable(*statement);
  return printed ? kExitDone : ReportError(printed.error());
}

}  // namespace tlparse
