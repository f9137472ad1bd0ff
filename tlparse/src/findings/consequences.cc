#include "findings/consequences.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tlparse {
namespace {

// By run.json: ranks of `cause`, and others which were asked to end when it had come.
bool WereAskedAfter(const Finding& end, const Finding& cause,
                    const std::vector<ProcessExit>& exits) {
  return !end.ranks.empty() && cause.since_us &&
         std::all_of(end.ranks.begin(), end.ranks.end(), [&](std::int64_t rank) {
           if (std::find(cause.ranks.begin(), cause.ranks.end(), rank) != cause.ranks.end())
             return true;
           return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
             return one.rank == rank && one.WasAsked() && one.ended_us >= cause.since_us &&
                    one.started_us < cause.since_us;
           });
         });
}

bool Follows(const Finding& end, const Finding& cause, const std::vector<ProcessExit>& exits,
             bool is_root) {
  const bool is_stop = end.kind == FindingKind::kStoppedFirst;
  if (!is_stop && end.kind != FindingKind::kCollectiveNotReached) return false;
  if (end.ranks == cause.ranks || (is_root && is_stop && end.ranks.empty())) return true;
  if (is_stop && WereAskedAfter(end, cause, exits)) return true;
  if (cause.ranks.empty()) return is_root && cause.rank_count > 1;
  return !end.ranks.empty() &&
         std::includes(cause.ranks.begin(), cause.ranks.end(), end.ranks.begin(), end.ranks.end());
}

}  // namespace

void TakeConsequences(std::vector<Finding>& findings, Finding& cause,
                      const std::vector<ProcessExit>& exits, bool is_root) {
  for (auto one = findings.begin(); one != findings.end();) {
    const bool follows = Follows(*one, cause, exits, is_root);
    if (follows) cause.evidence.push_back(std::move(*one));
    one = follows ? findings.erase(one) : one + 1;
  }
}

void MoveBehindDivergence(std::vector<Finding>& findings) {
  if (findings.empty() || findings.back().kind != FindingKind::kCrashed) return;
  const auto found = std::find_if(findings.begin(), findings.end() - 1, [](const Finding& one) {
    return one.kind == FindingKind::kCollectiveDivergence &&
           one.severity == FindingSeverity::kError;
  });
  if (found == findings.end() - 1) return;
  found->evidence.push_back(std::move(findings.back()));
  findings.pop_back();
}

}  // namespace tlparse
