#include "cli/watch_end.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "cli/budget.h"
#include "report/report.h"
#include "report/viewer/export.h"

namespace tlparse {

FoundInputs FindOtherInputs(const WatchOptions& options) {
  FoundInputs found;
  if (options.input == "-") return found;
  std::vector<std::string> directories = options.more_inputs;
  directories.insert(directories.begin(), options.input);
  for (const std::string& directory : directories) {
    if (Result<FoundInputs> inputs = FindInputs(directory); inputs)
      AppendInputs(std::move(*inputs), found);
  }
  return found;
}

bool AreEmptyFiles(const std::map<std::string, LiveLog>& logs) {
  return std::all_of(logs.begin(), logs.end(), [](const auto& log) {
    std::error_code error;
    return std::filesystem::file_size(log.first, error) == 0 && !error;
  });
}

Result<void> WriteWatchReport(const WatchOptions& options, const Directory& directory,
                              const std::string& database_path, std::int64_t run_id) {
  ASSIGN_OR_RETURN(Database database, Database::Open(database_path, Database::Mode::kReadOnly));
  ReportOptions report;
  report.run_id = run_id;
  report.world_size = options.world_size;
  report.viewer = !ViewerPage().empty();
  if (report.viewer) report.root_index_name = kPlainIndexName;
  RETURN_IF_ERROR(WriteReport(database, directory, report));
  return {};
}

Result<bool> CheckWatchBudget(const WatchOptions& options, const std::string& database_path,
                              const std::string& run) {
  ASSIGN_OR_RETURN(Database database, Database::Open(database_path, Database::Mode::kReadOnly));
  CheckBudget budget = options.budget;
  budget.run = run;
  ASSIGN_OR_RETURN(const CheckAnswer answer, RunCheck(database, budget));
  if (!options.json) PrintCheck(answer);
  return answer.IsOk();
}

}  // namespace tlparse
