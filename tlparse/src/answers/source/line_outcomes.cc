#include "answers/source/line_outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "facts/text/compile_label.h"
#include "queries/answers/source/line_outcomes.h"

namespace tlparse {

std::string_view Name(LineOutcomeKind kind) {
  switch (kind) {
    case LineOutcomeKind::kFunction:
      return "function";
    case LineOutcomeKind::kGraphBreak:
      return "graph_break";
    case LineOutcomeKind::kRecompile:
      return "recompile";
    case LineOutcomeKind::kFailure:
      return "failure";
    case LineOutcomeKind::kGuard:
      return "guard";
    case LineOutcomeKind::kNode:
      return "node";
    case LineOutcomeKind::kKernel:
      return "kernel";
  }
  return {};
}

PlaceInSource ParsePlace(const std::string& text) {
  constexpr std::size_t kMostDigits = 9;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size() ||
      text.size() - colon - 1 > kMostDigits ||
      text.find_first_not_of("0123456789", colon + 1) != std::string::npos)
    return {text, std::nullopt};
  return {text.substr(0, colon), std::stoll(text.substr(colon + 1))};
}

namespace {

// PyTorch cuts the paths of guards at the left: "ork/scripts/a.py" is the one file that ends so.
void CompleteFiles(const std::set<std::string>& whole_files, std::vector<LineOutcome>& outcomes) {
  for (LineOutcome& one : outcomes) {
    if (one.file.starts_with('/')) continue;
    const auto ends_so = [&](const std::string& whole) { return whole.ends_with(one.file); };
    if (std::count_if(whole_files.begin(), whole_files.end(), ends_so) == 1)
      one.file = *std::find_if(whole_files.begin(), whole_files.end(), ends_so);
  }
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const LineOutcome& a, const LineOutcome& b) {
                     return std::tie(a.file, a.line, a.kind) < std::tie(b.file, b.line, b.kind);
                   });
}

}  // namespace

Result<std::vector<LineOutcome>> LoadLineOutcomes(Database& database, std::int64_t run_id,
                                                  const PlaceInSource& place,
                                                  const AskedParticipant& asked) {
  std::vector<LineOutcome> outcomes;
  using Key = std::tuple<std::int64_t, std::string, std::int64_t, std::string, std::string,
                         std::string, std::string, std::int64_t>;
  std::map<Key, std::size_t> known;
  std::set<std::string> whole_files;
  FOR_EACH_ROW(const OutcomeOfLine& row, Query<OutcomeOfLine>(database, {.run_id = run_id,
                                                                         .file = place.file,
                                                                         .line = place.line,
                                                                         .rank = asked.rank,
                                                                         .pid = asked.pid})) {
    for (const std::string_view file : {row.file, row.compile_file})
      if (file.starts_with('/')) whole_files.emplace(file);
    std::string label = CompileLabel(row.label, row.generation);
    const auto [at, is_new] = known.try_emplace(
        Key{row.kind, row.file, row.line, label, row.function, row.direction, row.text, row.count},
        outcomes.size());
    if (is_new)
      outcomes.push_back({.kind = static_cast<LineOutcomeKind>(row.kind),
                          .file = std::string(row.file),
                          .logged_file = std::string(row.file),
                          .line = row.line,
                          .label = std::move(label),
                          .function = std::string(row.function),
                          .direction = std::string(row.direction),
                          .text = std::string(row.text),
                          .count = row.count,
                          .ranks = {},
                          .compile_id = row.compile_id,
                          .record_id = row.record_id});
    std::vector<std::int64_t>& ranks = outcomes[at->second].ranks;
    if (row.rank && std::find(ranks.begin(), ranks.end(), *row.rank) == ranks.end())
      ranks.push_back(*row.rank);
  }
  for (LineOutcome& one : outcomes) std::sort(one.ranks.begin(), one.ranks.end());
  CompleteFiles(whole_files, outcomes);
  return outcomes;
}

Result<std::string> LoadCodeOfLine(Database& database, const std::string& logged_file,
                                   std::int64_t line) {
  FOR_EACH_ROW(const CodeOfLine& row,
               Query<CodeOfLine>(database, {.file = logged_file, .line = line})) {
    return std::string(row.code);
  }
  return std::string();
}

}  // namespace tlparse
