// The calls that ranks issued last, over all groups.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {
namespace {

struct LastCall {
  const IssuedGroup* group = nullptr;  // nullptr: the rank issued nothing
  const IssuedCollective* call = nullptr;
  bool is_alone = false;  // no other rank has issued that number of the group
};

LastCall LastCallOf(const IssuedJob& job, std::size_t rank) {
  LastCall last;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      if (group.ranks[i] != rank) continue;
      const IssuedCollective& call = group.issued[i].back();
      if (last.call == nullptr || call.start_ns > last.call->start_ns) last = {&group, &call, true};
    }
  }
  for (std::size_t i = 0; last.group != nullptr && i < last.group->ranks.size(); ++i) {
    if (last.group->ranks[i] != rank && !last.group->At(i, last.call->sequence).empty())
      last.is_alone = false;
  }
  return last;
}

struct LastMessage {
  const MessageGroup* group = nullptr;
  const IssuedCollective* call = nullptr;  // nullptr: none
  std::size_t rank = 0;
};

// Of one rank, or of all.
LastMessage LastMessageOf(const IssuedJob& job, const std::optional<std::size_t>& rank) {
  LastMessage last;
  for (const MessageGroup& group : job.message_groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const IssuedCollective& call = group.issued[i].back().call;
      if ((!rank || group.ranks[i] == *rank) &&
          (last.call == nullptr || call.start_ns > last.call->start_ns))
        last = {&group, &call, group.ranks[i]};
    }
  }
  return last;
}

}  // namespace

bool WaitsElsewhere(const IssuedJob& job, const IssuedGroup& group, std::size_t rank) {
  return !LastElsewhere(job, group, rank).empty() && LastCallOf(job, rank).call->IsOpen();
}

std::string LastElsewhere(const IssuedJob& job, const IssuedGroup& group, std::size_t rank) {
  const LastCall last = LastCallOf(job, rank);
  if (last.group == nullptr || last.group == &group || !last.is_alone ||
      !NeedsAllRanks(last.call->plain_op))
    return {};
  const LastMessage message = LastMessageOf(job, rank);
  if (message.call != nullptr && message.call->start_ns > last.call->start_ns) return {};
  return fmt::format("The last call of {} in any group is #{} {} of {}, which no other dump has",
                     RanksText(job, {rank}), last.call->sequence, last.call->Title(),
                     last.group->Title());
}

std::string LaterElsewhere(const IssuedJob& job, const IssuedGroup& group, std::size_t rank) {
  const LastCall last = LastCallOf(job, rank);
  const LastMessage message = LastMessageOf(job, rank);
  if (last.call == nullptr) return {};
  const bool is_message = message.call != nullptr && message.call->start_ns > last.call->start_ns;
  if (!is_message && last.group == &group) return {};
  const IssuedCollective& call = is_message ? *message.call : *last.call;
  return fmt::format("#{} {} of {}", call.sequence, call.Title(),
                     is_message ? message.group->Title() : last.group->Title());
}

std::optional<LackedCall> LackedByOthers(const IssuedJob& job, const IssuedGroup& group,
                                         std::size_t rank) {
  if (LastElsewhere(job, group, rank).empty()) return std::nullopt;
  const LastCall last = LastCallOf(job, rank);
  LackedCall lacked{last.group, last.call, {}};
  for (const std::size_t other : last.group->ranks) {
    if (other == rank) continue;
    if (!job.ranks[other].has_file || job.ranks[other].is_cut) return std::nullopt;
    lacked.ranks.push_back(other);
  }
  if (lacked.ranks.empty()) return std::nullopt;
  return lacked;
}

std::optional<EarlyDump> FindEarlyDump(const IssuedJob& job) {
  for (const IssuedGroup& group : job.groups) {
    for (const IssuedLine& line : IssuedLines(job, group)) {
      if (line.missing.empty() || !NeedsAllRanks(line.usual->plain_op)) continue;
      std::vector<std::size_t> holders;
      for (std::size_t i = 0; i < group.ranks.size(); ++i) {
        if (!group.At(i, line.sequence).empty()) holders.push_back(group.ranks[i]);
      }
      EarlyDump early;
      early.ranks = RanksText(job, line.missing);
      early.rank_count = line.missing.size();
      early.call =
          fmt::format("{} #{} of {}", line.usual->PrintedOp(), line.sequence, group.Title());
      early.holders = RanksText(job, holders);
      early.elsewhere = LastElsewhere(job, group, line.missing.front());
      return early;
    }
  }
  return std::nullopt;
}

std::optional<FinalCall> FindFinalCall(const IssuedJob& job) {
  std::optional<FinalCall> final_call;
  std::int64_t latest_ns = INT64_MIN;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const IssuedCollective& call = group.issued[i].back();
      if (!call.IsRecorded() || call.start_ns <= latest_ns) continue;
      latest_ns = call.start_ns;
      final_call = {RanksText(job, {group.ranks[i]}),
                    fmt::format("#{} {} of {}", call.sequence, call.Title(), group.Title()),
                    call.file, call.line};
    }
  }
  const LastMessage message = LastMessageOf(job, std::nullopt);
  if (message.call != nullptr && message.call->start_ns > latest_ns)
    final_call = {RanksText(job, {message.rank}),
                  fmt::format("#{} {} of {}", message.call->sequence, message.call->Title(),
                              message.group->Title()),
                  message.call->file, message.call->line};
  return final_call;
}

}  // namespace tlparse
