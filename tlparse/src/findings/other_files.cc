// Ranks that ran other files: another text of one file, or a file of that name in another folder.
#include "queries/findings/other_files.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "facts/ranks/other_functions.h"
#include "findings/divergences.h"

namespace tlparse {
namespace {

// The user's files that nodes of a graph come from.
Result<std::set<std::string>> FilesOf(Database& database, std::int64_t content_id) {
  std::set<std::string> files;
  FOR_EACH_ROW(const FileOfGraph& row, Query<FileOfGraph>(database, {.content_id = content_id})) {
    if (!IsTorchFile(row.path)) files.emplace(row.path);
  }
  return files;
}

// "losses.py"; of a package's "shop/__init__.py".
std::string NameOf(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (path.ends_with("/__init__.py") && slash > 0) slash = path.rfind('/', slash - 1);
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// By name, those that only one of the two has; of a name that several of them have, none.
std::map<std::string, std::string> OnlyIn(const std::set<std::string>& files,
                                          const std::set<std::string>& others) {
  std::map<std::string, std::string> own;
  for (const std::string& file : files) {
    if (others.contains(file)) continue;
    const auto [found, is_new] = own.try_emplace(NameOf(file), file);
    if (!is_new) found->second.clear();
  }
  return own;
}

// The path with "#" in place of each number that equals the rank: "/code/2/a.py" of rank 2 becomes
// "/code/#/a.py". Ranks that run copies in folders with their own number then have equal paths.
std::string WithoutRank(std::string_view path, const std::optional<std::int64_t>& rank) {
  const std::string number = rank ? std::to_string(*rank) : std::string();
  std::string result;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = at;
    while (end < path.size() && IsDigit(path[end])) ++end;
    const std::string_view digits = path.substr(at, end - at);
    if (digits.empty()) {
      result += path[at++];
      continue;
    }
    result += digits == number ? "#" : digits;
    at = end;
  }
  return result;
}

}  // namespace

std::string DivergenceFinder::OtherText(const RankClass& one, const std::string& file) const {
  const std::optional<MovedFunction> moved =
      FindMoved(context_.database, job_, Reference().front(), one.ranks.front(), file);
  if (!moved) return {};
  return fmt::format("{} begins in line {} of it on {}, in line {} on {}.", moved->name,
                     moved->new_line, context_.WhoInside(one.ranks), moved->old_line,
                     context_.WhoInside(Reference()));
}

DivergenceFinder::OtherFile DivergenceFinder::OtherFolder(const RankClass& one,
                                                          const RankAspect& aspect) const {
  const std::int32_t slot = aspect.slots.front();
  const RankIndex reference = Reference().front(), rank = one.ranks.front();
  const std::int32_t a = job_.CompileOf(reference, slot), b = job_.CompileOf(rank, slot);
  if (a < 0 || b < 0) return {};
  const auto content = [&](std::int32_t compile) {
    return job_.compiles()[static_cast<std::size_t>(compile)].graph_content;
  };
  const Result<std::set<std::string>> old_files = FilesOf(context_.database, content(a));
  const Result<std::set<std::string>> new_files = FilesOf(context_.database, content(b));
  if (!old_files || !new_files) return {};
  const std::map<std::string, std::string> only_old = OnlyIn(*old_files, *new_files);
  for (const auto& [name, path] : OnlyIn(*new_files, *old_files)) {
    const auto other = only_old.find(name);
    if (path.empty() || other == only_old.end() || other->second.empty()) continue;
    // Elsewhere the graphs differ for another reason.
    if (aspect.file != path && aspect.file != other->second) continue;
    const auto rank_of = [&](RankIndex index) {
      return job_.participants()[static_cast<std::size_t>(index)].rank;
    };
    if (WithoutRank(path, rank_of(rank)) == WithoutRank(other->second, rank_of(reference)))
      continue;
    return {name, fmt::format("{} ran {}, {} {}.", context_.Who(one.ranks), path,
                              context_.WhoInside(Reference()), other->second)};
  }
  return {};
}

}  // namespace tlparse
