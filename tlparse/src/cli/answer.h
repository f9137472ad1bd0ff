// Answers that are one query: prints the rows as a table, or as JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/terminal.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

// A value as a cell of a table; nothing, or NULL, is empty.
std::string CellText(const Statement& statement, int column);
std::string CellText(const std::optional<std::int64_t>& number);
std::string CellText(const std::optional<std::string_view>& text);

// {"rows": [rows…]} to standard output, with the columns as members. Blobs become {"base64": …}.
Result<void> PrintRowsAsJson(Statement statement, std::string_view only = {});

// --json and the database argument that every answer takes.
struct AnswerArguments {
  std::string database;
  bool json = false;
};
void AddAnswerArguments(Arguments& app, AnswerArguments& arguments);
// --rank and --process. What is asked of one that is not there: CheckAsked.
void AddAsked(Arguments& app, AskedParticipant& asked,
              const std::string& help_of_rank = "only this rank",
              const std::string& help_of_process = "only the process of this pid");
// Opens the database and answers. Returns the exit code.
int AnswerFrom(const std::string& path,
               const std::function<Result<void>(Database& database)>& answer);

// --run and --launch of answers about all runs of a database, and all launches, unless one is
// named. Their tables then begin with a column "run", and those of AddOfLaunch with "launch".
class RunFilter {
 public:
  void AddTo(Arguments& app);
  // Of the run's id; its inputs, if the answer is empty: see NotLookedFor.
  Result<std::string> WhyNone(Database& database, std::string_view of_torch_logs) const;
  bool has_launch() const { return launch_.has_value(); }
  // The run's id; nothing: all runs.
  Result<std::optional<std::int64_t>> RunId(Database& database) const;
  // The run's id and the launch's ordinal; nothing: all. kNotFound, with a list of those that exist,
  // if there is none of that name.
  struct Named {
    std::optional<std::int64_t> run_id, launch;
  };
  Result<Named> Find(Database& database);
  // After Find: a table whose first column is the run, if there are several runs.
  Table MakeTable(std::vector<Table::Column> columns) const;
  void Add(Table& table, std::string run, std::vector<std::string> cells) const;
  // The same with the launch behind the run, if a run has several launches.
  Table MakeTableOfLaunches(std::vector<Table::Column> columns) const;
  void AddOfLaunch(Table& table, std::string run, std::string launch,
                   std::vector<std::string> cells) const;

 private:
  std::optional<std::string> name_;
  std::optional<std::int64_t> launch_;
  bool has_several_ = false;
  bool has_launches_ = false;  // several of a run
};

}  // namespace tlparse
