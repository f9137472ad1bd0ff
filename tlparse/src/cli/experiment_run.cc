#include "cli/experiment_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "answers/experiment/good_run.h"
#include "answers/experiment/output_numbers.h"
#include "base/file_descriptor.h"
#include "cli/run.h"
#include "facts/ranks/job_facts.h"
#include "import/importer.h"
#include "inputs/find_inputs.h"
#include "store/schema.h"

namespace tlparse {
namespace {

// Standard output is standard error's, and what both were again at the end.
class OutputAside {
 public:
  OutputAside()
      : input_(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)),
        output_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    std::fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~OutputAside() {
    std::fflush(stdout);
    dup2(output_.get(), STDOUT_FILENO);
    dup2(input_.get(), STDIN_FILENO);
  }
  OutputAside(const OutputAside&) = delete;

 private:
  FileDescriptor input_, output_;
};

Result<void> PrepareProcess(const RecordedCommand& command) {
  for (const std::string& variable : command.variables) {
    const std::size_t sign = variable.find('=');
    if (sign != std::string::npos)
      setenv(variable.substr(0, sign).c_str(), variable.substr(sign + 1).c_str(), 1);
  }
  if (!command.directory.empty() && chdir(command.directory.c_str()) != 0)
    return Fail(ErrorCode::kNotFound,
                fmt::format("the command's directory '{}' is not there", command.directory));
  return {};
}

// A shared cache is a variable, and a first run that fills it.
std::vector<Change> AsMade(const std::vector<Change>& changes, const std::string& output) {
  std::vector<Change> made = changes;
  for (Change& change : made) {
    if (change.kind == ChangeKind::kSharedCache)
      change = {ChangeKind::kVariable, "TORCHINDUCTOR_CACHE_DIR", output + "_cache", {}, {}};
  }
  return made;
}

Result<int> RecordRun(const ExperimentPlan& plan, const std::string& output,
                      const std::vector<Change>& changes, HookRequests requests) {
  RunOptions options;
  options.command = plan.command.words;
  options.output = output;
  options.requests = std::move(requests);
  options.requests.changes = changes;
  options.hang_after_s = kHangForDump;
  options.quiet = true;
  const OutputAside aside;
  return RecordCommand(options);
}

// The hook names what it has changed; a variable is in the environment that the command is given.
std::vector<Change> Unmade(const std::vector<Change>& changes, const std::string& output) {
  std::set<std::size_t> made;
  std::ifstream file(output + "/changed.txt");
  std::int64_t pid = 0;
  std::size_t index = 0;
  while (file >> pid >> index) made.insert(index);
  std::vector<Change> unmade;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool is_variable =
        changes[i].kind == ChangeKind::kVariable || changes[i].kind == ChangeKind::kNoVariable;
    if (!is_variable && !made.contains(i)) unmade.push_back(changes[i]);
  }
  return unmade;
}

Result<std::string> DatabaseFile(const std::string& path) {
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(path, error);
  const std::string file = is_directory ? path + "/trace.db" : path;
  const std::string whole = std::filesystem::canonical(file, error).string();
  if (error) return Fail(ErrorCode::kNotFound, fmt::format("'{}': {}", file, error.message()));
  return whole;
}

// False: there is nothing to read.
Result<bool> AddRun(const std::string& database, const std::string& name,
                    const std::string& output) {
  ASSIGN_OR_RETURN(FoundInputs found, FindInputs(output + "/recorded"));
  if (found.logs.empty() && found.runtime.empty()) return false;
  ImportOptions options;
  options.database_path = database;
  options.append = true;
  options.run_name = name;
  options.runtime_inputs = found.runtime;
  options.derive = &WriteJobFacts;
  RETURN_IF_ERROR(ImportLogs(found.logs, found.skipped, options));
  return true;
}

}  // namespace

Result<ExperimentRun> RunExperiment(const ExperimentPlan& plan, const std::string& finding_id,
                                    const RunOutcome& before, const JudgeExperiment& judge) {
  ASSIGN_OR_RETURN(const std::string file, DatabaseFile(plan.database));
  const std::string output = std::filesystem::absolute(plan.output).string();
  HookRequests requests;  // what the base run recorded besides
  {
    ASSIGN_OR_RETURN(Database database, Database::Open(file, Database::Mode::kReadOnly));
    ASSIGN_OR_RETURN(requests.numbers, RecordedNumbers(database, plan.base_run_id));
    ASSIGN_OR_RETURN(requests.profile, RecordedProfile(database, plan.base_run_id));
  }
  RETURN_IF_ERROR(PrepareProcess(plan.command));
  ExperimentRun done;
  done.before = before;
  done.experiment = {finding_id,
                     plan.base_run_id,
                     plan.changes,
                     plan.command.words,
                     output,
                     std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count()};
  const std::vector<Change> changes = AsMade(plan.changes, output);
  if (FindChange(plan.changes, ChangeKind::kSharedCache) != nullptr)
    RETURN_IF_ERROR(RecordRun(plan, output + "_fill", changes, {}));
  ASSIGN_OR_RETURN(const int code, RecordRun(plan, output, changes, std::move(requests)));
  ASSIGN_OR_RETURN(const bool has_run, AddRun(file, plan.name, output));
  ASSIGN_OR_RETURN(Database database, Database::Open(file, Database::Mode::kAppend));
  if (has_run) {
    ASSIGN_OR_RETURN(done.changed, LoadOutcome(database, plan.name));
    done.changed->exit_code = code;
    ASSIGN_OR_RETURN(done.judgement,
                     judge(database, before, *done.changed, Unmade(changes, output)));
  } else {
    done.judgement.reason = fmt::format("the command left nothing to read (exit code {})", code);
  }
  // One transaction: each of the rows that a migration writes would be synced to the disk.
  RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  RETURN_IF_ERROR(MigrateSchema(database));  // an earlier tlparse made no table for it
  ASSIGN_OR_RETURN(done.id, AddExperiment(database, done.experiment, before,
                                          done.changed ? &*done.changed : nullptr, done.judgement));
  RETURN_IF_ERROR(database.Execute("COMMIT"));
  return done;
}

}  // namespace tlparse
