#include "facts/collectives/issued_lines.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "facts/collectives/issued_batches.h"

namespace tlparse {
namespace {

// What became of the calls, once it is known who came when.
void SetStates(const IssuedGroup& group, IssuedLine& line) {
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::vector<const IssuedCollective*> all = group.At(i, line.sequence);
    if (all.empty()) continue;
    const IssuedCollective& one = *all.front();
    std::vector<std::size_t>* state = &line.done;
    if (one.IsInIt()) {
      state = &line.waiting;
    } else if (one.progress == IssuedProgress::kNotStarted) {
      state = &line.not_started;
    } else if (one.progress == IssuedProgress::kScheduled) {
      state = &line.enqueued;
    } else if (one.progress == IssuedProgress::kIssued) {
      state = &line.issued;
    } else if (!one.IsCompleted() &&
               (line.is_after_timeout || line.IsTimedOut() || line.is_mismatched)) {
      const bool gave_up = !line.is_after_timeout && one.timeout_ms > 0 &&
                           line.last_ns - one.arrived_ns > one.timeout_ms * 1'000'000;
      state = gave_up ? &line.timed_out : &line.ended;
    }
    state->push_back(group.ranks[i]);
  }
}

bool IsMismatched(const IssuedGroup& group, std::int64_t sequence) {
  std::set<std::string> signatures;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::vector<const IssuedCollective*> all = group.At(i, sequence);
    if (!all.empty()) signatures.insert(IssuedSignature(all));
  }
  return signatures.size() > 1;
}

// Moves the ranks whose call returned, but is not recorded as completed, from `done` to `ended`.
void KeepCompleted(const IssuedGroup& group, IssuedLine& line) {
  std::vector<std::size_t> completed;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (!std::binary_search(line.done.begin(), line.done.end(), group.ranks[i])) continue;
    const bool is_completed = group.At(i, line.sequence).front()->IsCompleted();
    (is_completed ? completed : line.ended).push_back(group.ranks[i]);
  }
  std::sort(line.ended.begin(), line.ended.end());
  line.done = std::move(completed);
}

// A collective that needs all ranks is not completed on one and not reached by another: a call that
// returned may have failed, and a rank whose dump is older may have issued it since.
void SettleMissing(const IssuedGroup& group, IssuedLine& line) {
  if (line.missing.empty() || !NeedsAllRanks(line.usual->plain_op)) return;
  KeepCompleted(group, line);
  if (line.done.empty()) return;
  line.unknown.insert(line.unknown.end(), line.missing.begin(), line.missing.end());
  line.missing.clear();
}

// The last call of a group of which a member is unknown, or of which one rank alone is known: where
// that member did not come, the call returned with an error. Later calls would show that it had not.
void SettleLast(const IssuedGroup& group, IssuedLine& line) {
  const bool is_alone = group.ranks.size() == 1 && !group.has_members;
  if ((line.unknown.empty() && !is_alone) || !NeedsAllRanks(line.usual->plain_op)) return;
  KeepCompleted(group, line);
}

// Ranks whose files have no lines (JSON dumps) are with those that may have issued the same, if that
// is one call only.
void MergeUnplaced(std::map<std::string, const IssuedCollective*>& known, IssuedLine& line) {
  for (auto one = line.by_title.begin(); one != line.by_title.end();) {
    const IssuedCollective& unplaced = *known[one->first];
    std::vector<std::size_t>* only = nullptr;
    std::size_t count = 0;
    for (auto& [title, ranks] : line.by_title) {
      if (!unplaced.file.empty() || known[title]->file.empty() ||
          !unplaced.MayLookLike(*known[title]))
        continue;
      only = &ranks;
      ++count;
    }
    if (count != 1) {
      ++one;
      continue;
    }
    only->insert(only->end(), one->second.begin(), one->second.end());
    std::sort(only->begin(), only->end());
    one = line.by_title.erase(one);
  }
}

// A backend that does not record starts retires its calls some time after they ended: one that
// another rank has ended may have ended here too.
void SettleOpen(const IssuedGroup& group, IssuedLine& line) {
  if (line.done.empty() || line.waiting.empty() || !NeedsAllRanks(line.usual->plain_op)) return;
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (!std::binary_search(line.waiting.begin(), line.waiting.end(), group.ranks[i])) continue;
    const bool is_known = group.At(i, line.sequence).front()->progress == IssuedProgress::kStarted;
    (is_known ? waiting : line.issued).push_back(group.ranks[i]);
  }
  std::sort(line.issued.begin(), line.issued.end());
  line.waiting = std::move(waiting);
}

// A rank had ended it before the last one came.
bool HaveOtherClocks(const IssuedGroup& group, std::int64_t sequence, std::int64_t last_ns) {
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::vector<const IssuedCollective*> all = group.At(i, sequence);
    if (all.empty() || !NeedsAllRanks(all.front()->plain_op)) continue;
    if (all.front()->end_ns > 0 && all.front()->end_ns < last_ns) return true;
  }
  return false;
}

// Collectives that a rank has not waited for one after the other share time.
std::int64_t UnionNs(std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  std::sort(spans.begin(), spans.end());
  std::int64_t sum_ns = 0, end_ns = INT64_MIN;
  for (const auto& [from_ns, to_ns] : spans) {
    sum_ns += std::max<std::int64_t>(0, to_ns - std::max(from_ns, end_ns));
    end_ns = std::max(end_ns, to_ns);
  }
  return sum_ns;
}

}  // namespace

bool NeedsAllRanks(std::string_view plain_op) {
  for (const std::string_view op :
       {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"}) {
    if (plain_op.starts_with(op)) return true;
  }
  return false;
}

std::vector<IssuedLine> IssuedLines(const IssuedJob& job, const IssuedGroup& group) {
  std::set<std::int64_t> sequences;
  for (const std::vector<IssuedCollective>& issued : group.issued) {
    for (const IssuedCollective& one : issued) sequences.insert(one.sequence);
  }
  std::vector<IssuedLine> lines;
  for (const std::int64_t sequence : sequences) {
    IssuedLine line;
    line.sequence = sequence;
    std::map<std::string, const IssuedCollective*> known;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const std::vector<const IssuedCollective*> all = group.At(i, sequence);
      if (all.empty()) {
        const bool is_before =
            !group.issued[i].empty() && sequence < group.issued[i].front().sequence;
        const bool is_unknown = is_before || job.ranks[group.ranks[i]].is_cut ||
                                group.issued[i].front().source == IssuedSource::kProfile;
        (is_unknown ? line.unknown : line.missing).push_back(group.ranks[i]);
        continue;
      }
      const IssuedCollective& one = *all.front();
      const std::string title = BatchTitle(all);
      known.try_emplace(title, &one);
      line.by_title[title].push_back(group.ranks[i]);
      if (one.arrived_ns < line.first_ns) {
        line.first_ns = one.arrived_ns;
        line.timeout_ns = one.timeout_ms * 1'000'000;
      }
      if (one.arrived_ns > line.last_ns) {
        line.last_ns = one.arrived_ns;
        line.last_rank = group.ranks[i];
      }
    }
    line.has_other_clocks = line.missing.empty() && HaveOtherClocks(group, sequence, line.last_ns);
    MergeUnplaced(known, line);
    // What most issued; of several the one of the lowest rank.
    const std::vector<std::size_t>* most = nullptr;
    for (const auto& [title, ranks] : line.by_title) {
      if (most != nullptr &&
          std::pair(most->size(), ranks.front()) >= std::pair(ranks.size(), most->front()))
        continue;
      most = &ranks;
      line.usual = known[title];
    }
    line.is_after_timeout =
        !lines.empty() && (lines.back().is_after_timeout || lines.back().IsTimedOut());
    line.is_mismatched = line.by_title.size() > 1 && IsMismatched(group, sequence);
    SetStates(group, line);
    SettleMissing(group, line);
    SettleOpen(group, line);
    line.unknown.insert(line.unknown.end(), group.unknown.begin(), group.unknown.end());
    std::sort(line.unknown.begin(), line.unknown.end());
    lines.push_back(std::move(line));
  }
  if (!lines.empty()) SettleLast(group, lines.back());
  return lines;
}

std::vector<RankWait> WaitsByRank(const IssuedJob& job) {
  std::vector<RankWait> waits(job.ranks.size());
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> spans(job.ranks.size());
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i].rank = i;
  for (const IssuedGroup& group : job.groups) {
    if (group.ranks.size() < 2) continue;
    for (const IssuedLine& line : IssuedLines(job, group)) {
      if (!line.HasWait()) continue;
      if (line.HasLast()) ++waits[line.last_rank].last_in;
      for (std::size_t i = 0; i < group.ranks.size(); ++i) {
        const std::vector<const IssuedCollective*> all = group.At(i, line.sequence);
        if (all.empty()) continue;
        RankWait& wait = waits[group.ranks[i]];
        const std::int64_t timeout_ns = all.front()->timeout_ms * 1'000'000;
        const std::int64_t from_ns = all.front()->arrived_ns;
        ++wait.collectives;
        spans[group.ranks[i]].emplace_back(
            from_ns, timeout_ns > 0 ? std::min(line.last_ns, from_ns + timeout_ns) : line.last_ns);
      }
    }
  }
  for (RankWait& wait : waits) wait.wait_ns = UnionNs(spans[wait.rank]);
  std::erase_if(waits, [&](const RankWait& wait) {
    return wait.collectives == 0 || !job.IsAsked(wait.rank);
  });
  return waits;
}

}  // namespace tlparse
