#include "analysis/collectives/issued_lines.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tlparse {
namespace {

// What became of the calls, once it is known who came when.
void SetStates(const IssuedGroup& group, IssuedLine& line) {
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::vector<const IssuedCollective*> all = group.At(i, line.sequence);
    if (all.empty()) continue;
    const IssuedCollective& one = *all.front();
    std::vector<std::size_t>* state = &line.done;
    if (!one.is_done) {
      state = &line.waiting;
    } else if (!one.is_completed && (line.is_after_timeout || line.IsTimedOut())) {
      const bool gave_up = !line.is_after_timeout && one.timeout_ms > 0 &&
                           line.last_ns - one.start_ns > one.timeout_ms * 1'000'000;
      state = gave_up ? &line.timed_out : &line.ended;
    }
    state->push_back(group.ranks[i]);
  }
}

}  // namespace

std::vector<IssuedLine> IssuedLines(const IssuedGroup& group) {
  std::set<std::int64_t> sequences;
  for (const std::vector<IssuedCollective>& issued : group.issued) {
    for (const IssuedCollective& one : issued) sequences.insert(one.sequence);
  }
  std::vector<IssuedLine> lines;
  for (const std::int64_t sequence : sequences) {
    IssuedLine line;
    line.sequence = sequence;
    std::size_t most = 0;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const std::vector<const IssuedCollective*> all = group.At(i, sequence);
      if (all.empty()) {
        const bool is_before =
            !group.issued[i].empty() && sequence < group.issued[i].front().sequence;
        (is_before ? line.unknown : line.missing).push_back(group.ranks[i]);
        continue;
      }
      const IssuedCollective& one = *all.front();
      std::vector<std::size_t>& same = line.by_title[one.Title()];
      same.push_back(group.ranks[i]);
      if (same.size() > most) {
        most = same.size();
        line.usual = &one;
      }
      if (one.start_ns < line.first_ns) {
        line.first_ns = one.start_ns;
        line.timeout_ns = one.timeout_ms * 1'000'000;
      }
      if (one.start_ns > line.last_ns) {
        line.last_ns = one.start_ns;
        line.last_rank = group.ranks[i];
      }
    }
    line.is_after_timeout =
        !lines.empty() && (lines.back().is_after_timeout || lines.back().IsTimedOut());
    SetStates(group, line);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tlparse
