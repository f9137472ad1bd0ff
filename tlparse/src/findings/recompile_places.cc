#include "findings/recompile_places.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "queries/findings/recompiles.h"

namespace tlparse {

Result<void> CompletePath(FindingContext& context, FindingPlace& place) {
  constexpr std::string_view kCut = "…";
  if (!place.file.starts_with(kCut)) return {};
  const std::string_view end = std::string_view(place.file).substr(kCut.size());
  std::vector<std::string> files;
  FOR_EACH_ROW(const FileEndingWith& row, Query<FileEndingWith>(context.database, {.text = end})) {
    files.emplace_back(row.file);
  }
  if (files.size() == 1) place.file = std::move(files[0]);
  return {};
}

Result<void> SetUserCaller(FindingContext& context, const std::vector<std::int64_t>& ids,
                           Finding& finding) {
  if (!finding.place || IsUserFile(finding.place->file)) return {};
  std::optional<FindingPlace> first;
  std::set<std::pair<std::string, std::int64_t>> lines;
  for (const std::int64_t id : ids) {
    ASSIGN_OR_RETURN(const std::optional<FindingPlace> caller, UserCaller(context.database, id));
    if (!caller) continue;
    if (!first) first = caller;
    lines.emplace(caller->file, caller->line);
  }
  if (!first) return {};
  finding.detail += fmt::format(
      "The code is of a library, {}:{}; the place named is the line of the user's code that ran "
      "{}. ",
      finding.place->file, finding.place->line,
      lines.size() == 1 ? std::string("it")
                        : fmt::format("it first: it is compiled again for {} lines", lines.size()));
  finding.place = first;
  finding.is_of_caller = true;
  return {};
}

}  // namespace tlparse
