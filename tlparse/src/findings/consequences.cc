#include "findings/consequences.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace tlparse {
namespace {

// By run.json: ranks of `cause`, and others which were asked to end when it had come.
bool WereAskedAfter(const Finding& end, const Finding& cause,
                    const std::vector<ProcessExit>& exits) {
  std::set<std::int64_t> ranks(end.ranks.begin(), end.ranks.end());
  for (const ProcessExit& one : exits) {
    if (end.ranks.empty() && one.rank) ranks.insert(*one.rank);
  }
  if (ranks.empty() || !cause.since_us || (end.ranks.empty() && cause.ranks.empty())) return false;
  return std::all_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) {
    if (std::find(cause.ranks.begin(), cause.ranks.end(), rank) != cause.ranks.end()) return true;
    return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
      return one.rank == rank && one.WasAsked() && one.ended_us >= cause.since_us &&
             one.started_us < cause.since_us;
    });
  });
}

// A trace that failed at the line of an exception that ended its process, which names the exception.
bool IsTraceOf(const Finding& trace, const Finding& cause) {
  return trace.kind == FindingKind::kCompileFailed && trace.cause == kMakeFxFailed &&
         trace.ranks == cause.ranks && trace.place && cause.place &&
         trace.place->file == cause.place->file && trace.place->line == cause.place->line;
}

bool Follows(const Finding& end, const Finding& cause, const std::vector<ProcessExit>& exits,
             bool is_root) {
  if (IsTraceOf(end, cause)) return true;
  // It ended before it compiled anything.
  if (end.kind == FindingKind::kMissingRank) return !end.ranks.empty() && end.ranks == cause.ranks;
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

void MoveBehindOther(std::vector<Finding>& findings) {
  // Some ranks compiled another thing than the rest: one finding says so, and which ranks.
  const auto is_of_odd = [](const Finding& one) {
    return (one.kind == FindingKind::kInputDivergence ||
            one.kind == FindingKind::kGraphDivergence) &&
           one.severity != FindingSeverity::kNote && one.ranks.size() == 1;
  };
  const auto is_of_unknown = [](const Finding& one) {
    const bool is_of_all = one.kind == FindingKind::kStoppedFirst && one.ranks.empty();
    return one.severity == FindingSeverity::kError && (is_of_all || one.is_of_mismatch);
  };
  const auto is_error = [](const Finding& one) { return one.severity == FindingSeverity::kError; };
  const auto odd = std::find_if(findings.begin(), findings.end(), is_of_odd);
  const auto end = std::find_if(findings.begin(), findings.end(), is_of_unknown);
  if (odd == findings.end() || end == findings.end() ||
      std::count_if(findings.begin(), findings.end(), is_of_odd) > 1 ||
      std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
        return is_error(one) && &one != &*end && &one != &*odd;
      }))
    return;
  odd->severity = FindingSeverity::kError;
  odd->evidence.insert(odd->evidence.begin(), std::move(*end));
  findings.erase(end);
}

void MoveBehindDivergence(std::vector<Finding>& findings) {
  if (findings.empty() ||
      (findings.back().kind != FindingKind::kCrashed && !findings.back().is_of_mismatch))
    return;
  const auto found = std::find_if(findings.begin(), findings.end() - 1, [](const Finding& one) {
    return one.kind == FindingKind::kCollectiveDivergence &&
           one.severity == FindingSeverity::kError;
  });
  if (found == findings.end() - 1) return;
  found->evidence.push_back(std::move(findings.back()));
  findings.pop_back();
}

}  // namespace tlparse
