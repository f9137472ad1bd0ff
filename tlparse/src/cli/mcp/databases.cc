#include "cli/mcp/databases.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "cli/answer_input.h"
#include "cli/command.h"
#include "cli/mcp/messages.h"

namespace tlparse {

McpDatabases::McpDatabases(std::vector<std::string> names) {
  for (std::string& name : names) all_.push_back({std::move(name), {}});
}

McpDatabases::~McpDatabases() {
  if (directory_.empty()) return;
  for (int i = 1; i <= ingested_; ++i)
    for (const char* const ending : {"", "-journal", ".answers"})
      unlink(fmt::format("{}/{}.db{}", directory_, i, ending).c_str());
  rmdir(directory_.c_str());
}

std::vector<std::string> McpDatabases::Names() const {
  std::vector<std::string> names;
  for (const One& one : all_) names.push_back(one.name);
  return names;
}

std::string McpDatabases::First() const {
  if (all_.empty()) return {};
  const One& first = all_.front();
  return first.path.empty() && IsAnswerDatabase(first.name) ? first.name : first.path;
}

Result<std::string> McpDatabases::Find(std::string_view name, const ChildLimits& limits) {
  const auto found = name.empty() ? all_.begin()
                                  : std::find_if(all_.begin(), all_.end(),
                                                 [&](const One& one) { return one.name == name; });
  if (found == all_.end())
    return Fail(ErrorCode::kUsage,
                all_.empty()
                    ? "no database is open: call open with the path of one or of logs"
                    : fmt::format("no database '{}' is open: call open with its path", name));
  if (!found->path.empty()) return found->path;
  return Open(found->name, limits);
}

Result<std::string> McpDatabases::Open(const std::string& name, const ChildLimits& limits) {
  struct stat status {};
  if (stat(name.c_str(), &status) != 0)
    return Fail(ErrorCode::kNotFound, fmt::format("'{}' does not exist", name));
  std::string path = name;
  if (!IsAnswerDatabase(name)) {
    ASSIGN_OR_RETURN(path, Ingest(name, limits));
  }
  const auto known =
      std::find_if(all_.begin(), all_.end(), [&](const One& one) { return one.name == name; });
  if (known == all_.end()) {
    all_.push_back({name, path});
  } else {
    known->path = path;
  }
  return path;
}

Result<std::string> McpDatabases::Ingest(const std::string& name, const ChildLimits& limits) {
  if (directory_.empty()) {
    const char* const parent = std::getenv("TMPDIR");
    std::string made =
        fmt::format("{}/tlparse-XXXXXX", parent == nullptr || *parent == '\0' ? "/tmp" : parent);
    if (mkdtemp(made.data()) == nullptr)
      return Fail(ErrorCode::kIo, fmt::format("cannot make a directory like '{}'", made));
    directory_ = std::move(made);
    remove_.emplace(directory_);
  }
  const std::string path = fmt::format("{}/{}.db", directory_, ++ingested_);
  const std::array<std::string, 5> arguments = {name, "--db-only", "--db", path, "--no-browser"};
  ASSIGN_OR_RETURN(const ChildAnswer answer,
                   RunInChild([&] { return RunIngest(arguments); }, limits));
  if (answer.code != kExitDone) return Fail(ErrorCode::kUsage, MessageOf(answer));
  return path;
}

}  // namespace tlparse
