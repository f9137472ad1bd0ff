// Two threads of a rank that issue collectives in one group.
#include "queries/facts/collectives/issued_threads.h"

#include <fmt/format.h>

#include <algorithm>

#include "facts/collectives/issued_group.h"
#include "inputs/common/generated_code.h"

namespace tlparse {
namespace {

// The first of a rank's calls after `first` that may be `other`, and comes from another thread than it.
const IssuedCollective* LaterOfOtherThread(const std::vector<IssuedCollective>& issued,
                                           const IssuedCollective& first,
                                           const IssuedCollective& other) {
  const auto found = std::find_if(issued.begin(), issued.end(), [&](const IssuedCollective& one) {
    return one.sequence > first.sequence && one.thread != first.thread && one.MayBeCallOf(other);
  });
  return found == issued.end() ? nullptr : &*found;
}

}  // namespace

// Each of the two ranks issues the other's call as well, later and from another thread, and one of the
// threads is one that the program started: autograd's works inside of the main thread's backward.
Result<bool> GroupFinder::FindThreads(const std::vector<Positions>& classes,
                                      std::int64_t sequence) {
  if (classes.size() != 2) return false;
  const std::size_t positions[] = {std::min(classes[0].front(), classes[1].front()),
                                   std::max(classes[0].front(), classes[1].front())};
  const IssuedCollective* calls[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<const IssuedCollective*> own = group_.At(positions[i], sequence);
    if (own.size() != 1 || own.front()->thread.empty()) return false;
    calls[i] = own.front();
  }
  const IssuedCollective* later[2];
  for (std::size_t i = 0; i < 2; ++i) {
    later[i] = LaterOfOtherThread(group_.issued[positions[i]], *calls[i], *calls[1 - i]);
    if (later[i] == nullptr) return false;
  }
  std::string started;
  std::size_t started_count = 0, side = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(
        const FirstRow<ThreadOfCall> thread,
        tlparse::First(Query<ThreadOfCall>(database_, {.call_id = calls[i]->run_row_id})));
    if (!thread) continue;
    ++started_count;
    side = i;
    started = fmt::format("{} ({}:{})", thread->function, BaseName(thread->file), thread->line);
  }
  if (started_count != 1) return false;
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.severity = FindingSeverity::kError;
  Positions all;
  for (const Positions& one : classes) all.insert(all.end(), one.begin(), one.end());
  std::sort(all.begin(), all.end());
  for (const std::size_t one : all) finding.ranks.push_back(group_.ranks[one]);
  finding.title = fmt::format(
      "{} issued the calls of two threads in another order: #{} of {} is {} on rank {}, {} on rank "
      "{}",
      Ranks(all), sequence, group_.Title(), calls[0]->PrintedOp(),
      job_.ranks[group_.ranks[positions[0]]].name, calls[1]->PrintedOp(),
      job_.ranks[group_.ranks[positions[1]]].name);
  for (std::size_t i = 0; i < 2; ++i)
    finding.detail +=
        fmt::format("rank {}: {}, then #{} {}. ", job_.ranks[group_.ranks[positions[i]]].name,
                    calls[i]->Title(), later[i]->sequence, later[i]->Title());
  finding.detail += fmt::format(
      "The {} is of a thread that the program started, which runs {}. Calls of a group are paired "
      "by their order, and which thread is first is by chance",
      calls[side]->PrintedOp(), started);
  SetPlace(finding, group_, *calls[1 - side]);
  finding.cause = "two threads issue collectives of one group";
  finding.advice = fmt::format(
      "give the thread that runs {} a process group of its own (torch.distributed.new_group; "
      "async_save of a checkpoint takes it as process_group)",
      started.substr(0, started.find(' ')));
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse
