#include "cli/answer_input.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/plural.h"
#include "base/printable.h"
#include "base/remove_on_signal.h"
#include "cli/command.h"
#include "facts/ranks/job_facts.h"
#include "import/importer.h"
#include "log/find_logs.h"

namespace tlparse {
namespace {

bool Exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

bool IsDatabase(const std::string& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  std::string head(kMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == kMagic;
}

Result<FoundInputs> FindAll(const std::vector<std::string>& names) {
  FoundInputs found;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(FoundInputs more, FindInputs(name));
    if (more.logs.empty() && more.runtime.empty())
      return Fail(
          ErrorCode::kNotFound,
          fmt::format("'{}' is no database of tlparse and holds no structured trace or profile",
                      name));
    std::move(more.logs.begin(), more.logs.end(), std::back_inserter(found.logs));
    std::move(more.runtime.begin(), more.runtime.end(), std::back_inserter(found.runtime));
    std::move(more.skipped.begin(), more.skipped.end(), std::back_inserter(found.skipped));
  }
  return found;
}

Result<AnswerInput> Ingest(const FoundInputs& found, const std::string& run_name) {
  const char* directory = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/tlparse-XXXXXX",
                                 directory == nullptr || *directory == '\0' ? "/tmp" : directory);
  std::optional<HoldSignals> hold(std::in_place);
  if (mkdtemp(path.data()) == nullptr)
    return Fail(ErrorCode::kIo,
                fmt::format("cannot make a temporary directory like '{}'; set TMPDIR", path));
  const RemoveOnSignal remove(path);
  hold.reset();
  ImportOptions options;
  options.database_path = path + "/trace.db";
  options.run_name = run_name;
  options.runtime_inputs = found.runtime;
  options.derive = &WriteJobFacts;
  Result<ImportSummary> summary = ImportLogs(found.logs, found.skipped, options);
  Result<Database> database = summary
                                  ? Database::Open(options.database_path, Database::Mode::kReadOnly)
                                  : Result<Database>(tl::unexpected<Error>(summary.error()));
  unlink(options.database_path.c_str());
  rmdir(path.c_str());
  if (!database) return tl::unexpected<Error>(std::move(database).error());
  return AnswerInput{std::move(*database), {}, true};
}

}  // namespace

bool IsAnswerDatabase(const std::string& path) {
  return IsDatabase(path) || Exists(path + "/trace.db");
}

Result<AnswerInput> OpenAnswerInput(const std::string& name) {
  if (!Exists(name)) {
    // DB:run; the run's name may hold colons, the path may as well.
    for (std::size_t colon = name.find(':'); colon != std::string::npos;
         colon = name.find(':', colon + 1)) {
      if (!Exists(name.substr(0, colon)) || colon + 1 == name.size()) continue;
      ASSIGN_OR_RETURN(Database database, OpenAnswerDatabase(name.substr(0, colon)));
      return AnswerInput{std::move(database), name.substr(colon + 1), false};
    }
    return Fail(ErrorCode::kNotFound,
                fmt::format("'{}' is neither a database, DB:run, a log nor a directory", name));
  }
  if (IsAnswerDatabase(name)) {
    ASSIGN_OR_RETURN(Database database, OpenAnswerDatabase(name));
    return AnswerInput{std::move(database), {}, false};
  }
  ASSIGN_OR_RETURN(const FoundInputs found, FindAll({name}));
  return Ingest(found, name);
}

Result<Database> OpenAskedDatabase(const std::string& name) {
  if (!Exists(name) || IsAnswerDatabase(name)) return OpenAnswerDatabase(name);
  ASSIGN_OR_RETURN(const FoundInputs found, FindAll({name}));
  const std::string said = fmt::format(
      "tlparse: reading {} of '{}' for this answer; 'tlparse LOGS -o DIR' reads them once for "
      "all\n",
      Count(found.logs.size() + found.runtime.size(), "file"), Printable(name));
  std::fputs(said.c_str(), stderr);
  ASSIGN_OR_RETURN(AnswerInput input, Ingest(found, name));
  return std::move(input.database);
}

Result<AnswerInput> OpenAnswerInputs(const std::vector<std::string>& names) {
  if (names.size() == 1) return OpenAnswerInput(names.front());
  ASSIGN_OR_RETURN(const FoundInputs found, FindAll(names));
  return Ingest(found, names.front());
}

}  // namespace tlparse
