// Which value sent a rank that differs on another branch, where its guards show it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/findings/context.h"
#include "analysis/guard_text.h"

namespace tlparse {
namespace {

// A guard of a line that branches.
struct BranchGuard {
  std::string key, text, code, file;
  std::int64_t line = 0;
};

bool IsBranch(std::string_view code) {
  return code.starts_with("if ") || code.starts_with("elif ") || code.starts_with("while ");
}

// By what they check and where.
Result<std::map<std::string, BranchGuard>> LoadBranchGuards(Database& database,
                                                            std::int64_t compile_id) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT normalized_expression, user_code, user_file, user_line "
                                    "FROM guard WHERE compile_id = ? AND user_code IS NOT NULL "
                                    "AND normalized_expression <> '' ORDER BY ordinal"));
  rows.Bind(1, compile_id);
  std::map<std::string, BranchGuard> guards;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return guards;
    if (!IsBranch(rows.Text(1))) continue;
    BranchGuard guard{GuardKey(rows.Text(0)),
                      {},
                      std::string(rows.Text(1)),
                      std::string(rows.Text(2)),
                      rows.Int(3)};
    const std::string subject(GuardSubject(guard.key));
    if (subject.empty()) continue;
    guard.text = ReadableGuard(rows.Text(0), guard.code, guard.file, guard.line).guard;
    guards.emplace(fmt::format("{}\n{}\n{}", subject, guard.line, guard.code), std::move(guard));
  }
}

// The first compile of a finding in a rank that differs and in one that does not.
struct Sides {
  const JobCompile* odd = nullptr;
  const JobCompile* other = nullptr;
};

Sides FindSides(const FindingContext& context, const Finding& finding) {
  Sides sides;
  for (const JobCompile& compile : context.job.compiles()) {
    if (sides.odd != nullptr && sides.other != nullptr) break;
    const auto& rank =
        context.job.participants()[static_cast<std::size_t>(compile.participant)].rank;
    if (!rank || context.job.string(compile.label_id) != finding.compiles.front()) continue;
    const bool is_odd = std::binary_search(finding.ranks.begin(), finding.ranks.end(), *rank);
    if (const JobCompile*& side = is_odd ? sides.odd : sides.other; side == nullptr)
      side = &compile;
  }
  return sides;
}

}  // namespace

Result<void> SayBranches(FindingContext& context) {
  for (Finding& finding : context.findings) {
    if ((finding.kind != FindingKind::kGraphDivergence &&
         finding.kind != FindingKind::kCollectiveDivergence) ||
        finding.ranks.empty() || finding.compiles.empty())
      continue;
    const Sides sides = FindSides(context, finding);
    if (sides.odd == nullptr || sides.other == nullptr) continue;
    ASSIGN_OR_RETURN(const auto own, LoadBranchGuards(context.database, sides.odd->id));
    ASSIGN_OR_RETURN(const auto others, LoadBranchGuards(context.database, sides.other->id));
    for (const auto& [subject, guard] : own) {
      const auto found = others.find(subject);
      if (found == others.end() || found->second.key == guard.key) continue;
      finding.detail +=
          fmt::format("{}{} compiled it for {}, {} for {}, which {} tests: {}",
                      finding.detail.empty()          ? ""
                      : finding.detail.ends_with('.') ? " "
                                                      : ". ",
                      context.Who({sides.odd->participant}), guard.text,
                      context.WhoInside({sides.other->participant}), found->second.text,
                      PlaceText({guard.file, guard.line, {}}), guard.code);
      break;
    }
  }
  return {};
}

}  // namespace tlparse
