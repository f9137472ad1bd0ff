#include "report/served_database.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace tlparse {

Result<void> ServedDatabase::Open(std::optional<std::int64_t> followed) {
  ASSIGN_OR_RETURN(Database opened, Database::Open(path, Database::Mode::kReadOnly));
  database.emplace(std::move(opened));
  ASSIGN_OR_RETURN(ViewerData latest, ViewerData::Open(*database, followed));
  latest_run = latest.run_id();
  runs.emplace(latest_run, std::move(latest));
  return {};
}

void ServedDatabase::Close() {
  runs.clear();
  database.reset();
}

std::vector<std::string> NamesOfPaths(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> rest(paths.begin(), paths.end());
  std::vector<std::string> names(paths.size());
  const auto are_distinct = [&] {
    return std::set(names.begin(), names.end()).size() == names.size();
  };
  do {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!rest[i].has_filename()) continue;
      names[i] = rest[i].filename().string() + (names[i].empty() ? "" : "/" + names[i]);
      rest[i] = rest[i].parent_path();
    }
  } while (!are_distinct() && std::any_of(rest.begin(), rest.end(),
                                          [](const auto& one) { return one.has_filename(); }));
  return names;
}

}  // namespace tlparse
