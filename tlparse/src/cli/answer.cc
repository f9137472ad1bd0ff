#include "cli/answer.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json_writer.h"
#include "cli/answer_input.h"
#include "cli/command.h"
#include "facts/job/not_looked_for.h"
#include "facts/job/participants.h"
#include "queries/facts/job/participants.h"

namespace tlparse {

namespace {

void ValueToJson(const Statement& statement, int column, JsonWriter& json) {
  switch (statement.ColumnType(column)) {
    case SQLITE_INTEGER:
      json.Int(statement.Int(column));
      break;
    case SQLITE_FLOAT:
      json.Real(statement.Real(column));
      break;
    case SQLITE_TEXT:
      json.String(statement.Text(column));
      break;
    case SQLITE_BLOB:
      json.BeginObject().Key("base64").String(Base64(statement.Text(column))).EndObject();
      break;
    default:
      json.Null();
  }
}

}  // namespace

std::string CellText(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

std::string CellText(const std::optional<std::string_view>& text) {
  return std::string(text.value_or(""));
}

std::string CellText(const Statement& statement, int column) {
  switch (statement.ColumnType(column)) {
    case SQLITE_INTEGER:
      return fmt::format("{}", statement.Int(column));
    case SQLITE_FLOAT:
      return fmt::format("{}", statement.Real(column));
    case SQLITE_BLOB:
      return fmt::format("({} bytes that are not text)", statement.Text(column).size());
    default:
      return std::string(statement.Text(column));
  }
}

Result<void> PrintRowsAsJson(Statement statement, std::string_view only) {
  JsonWriter json;
  json.BeginObject().Key("rows").BeginArray();
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) break;
    json.BeginObject();
    for (int column = 0; column < statement.column_count(); ++column) {
      json.Key(statement.ColumnName(column));
      ValueToJson(statement, column, json);
    }
    json.EndObject();
  }
  json.EndArray();
  if (!only.empty()) json.Key("only").String(only);
  PrintJson(json.EndObject());
  return {};
}

void AddAnswerArguments(Arguments& app, AnswerArguments& arguments) {
  app.Add("db", arguments.database,
          "trace.db, the output directory that holds it, a log or a directory of logs")
      .Required();
  app.Flag("--json", arguments.json, "print JSON instead of a table");
}

void AddAsked(Arguments& app, AskedParticipant& asked, const std::string& help_of_rank,
              const std::string& help_of_process) {
  app.Add("--rank", asked.rank, help_of_rank);
  app.Add("--process", asked.pid, help_of_process);
}

int AnswerFrom(const std::string& path,
               const std::function<Result<void>(Database& database)>& answer) {
  Result<Database> database = OpenAskedDatabase(path);
  if (!database) return ReportError(database.error());
  const Result<void> answered = answer(*database);
  return answered ? kExitDone : ReportError(answered.error());
}

void RunFilter::AddTo(Arguments& app) {
  app.Add("--run", name_, "only the run of this name");
  app.Add("--launch", launch_, "only this launch (1 is the first)").Positive();
}

Result<RunFilter::Named> RunFilter::Find(Database& database) {
  Named named;
  if (launch_) {
    ASSIGN_OR_RETURN(const std::int64_t id, FindRun(database, name_.value_or("")));
    RETURN_IF_ERROR(FindLaunch(database, id, launch_));
    named.launch = launch_;
  }
  ASSIGN_OR_RETURN(named.run_id, RunId(database));
  ASSIGN_OR_RETURN(const FirstRow<SeveralParts> parts,
                   First(Query<SeveralParts>(database, {named.run_id})));
  has_launches_ = !launch_ && parts->has_launches;
  has_several_ = !named.run_id && parts->has_runs;
  return named;
}

Result<std::optional<std::int64_t>> RunFilter::RunId(Database& database) const {
  if (!name_) return std::nullopt;
  return FindRun(database, *name_);
}

Result<std::string> RunFilter::WhyNone(Database& database, std::string_view of_torch_logs) const {
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> run_id, RunId(database));
  return NotLookedFor(database, run_id, of_torch_logs);
}

Table RunFilter::MakeTable(std::vector<Table::Column> columns) const {
  if (has_several_) columns.insert(columns.begin(), {"run"});
  return Table(std::move(columns));
}

void RunFilter::Add(Table& table, std::string run, std::vector<std::string> cells) const {
  if (has_several_) cells.insert(cells.begin(), std::move(run));
  table.Add(std::move(cells));
}

Table RunFilter::MakeTableOfLaunches(std::vector<Table::Column> columns) const {
  if (has_launches_) columns.insert(columns.begin(), {"launch"});
  return MakeTable(std::move(columns));
}

void RunFilter::AddOfLaunch(Table& table, std::string run, std::string launch,
                            std::vector<std::string> cells) const {
  if (has_launches_) cells.insert(cells.begin(), std::move(launch));
  Add(table, std::move(run), std::move(cells));
}

}  // namespace tlparse
