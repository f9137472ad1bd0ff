#include "facts/collectives/issued_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "facts/text/message_lines.h"

namespace tlparse {
namespace {

// Of "nccl:send 0->1", "nccl:recv 1<-0".
std::optional<IssuedMessage> MessageOf(const IssuedCollective& call) {
  std::string_view name = call.op;
  name.remove_prefix(name.rfind(':') + 1);
  IssuedMessage message;
  message.is_send = name.starts_with("send ");
  if (!message.is_send && !name.starts_with("recv ")) return std::nullopt;
  name.remove_prefix(5);
  const std::optional<std::int64_t> own = TakeNumber(name);
  if (!own || !name.starts_with(message.is_send ? "->" : "<-")) return std::nullopt;
  name.remove_prefix(2);
  const std::optional<std::int64_t> peer = TakeNumber(name);
  if (!peer) return std::nullopt;
  message.own = *own;
  message.peer = *peer;
  message.call = call;
  return message;
}

}  // namespace

bool IsEndOfBatch(const IssuedCollective& one) {
  const bool has_size = one.shapes.find_first_of("0123456789") != std::string::npos;
  return one.op.ends_with("coalesced") && !has_size;
}

void SettleBatches(std::vector<IssuedCollective>& issued) {
  for (auto begin = issued.begin(); begin != issued.end();) {
    const auto end = std::find_if(begin, issued.end(), [&](const IssuedCollective& one) {
      return one.sequence != begin->sequence;
    });
    const IssuedCollective& last = *std::prev(end);
    if (last.IsRecorded() && IsEndOfBatch(last)) {
      for (auto member = begin; member != std::prev(end); ++member) {
        member->state = last.state;
        member->progress = last.progress;
        member->end_ns = last.end_ns;
      }
    }
    begin = end;
  }
}

std::vector<IssuedMessage> MessagesOf(const std::vector<IssuedCollective>& issued) {
  std::vector<IssuedMessage> messages;
  std::map<std::pair<bool, std::int64_t>, std::size_t> counts;  // (is_send, peer)
  for (const IssuedCollective& one : issued) {
    std::optional<IssuedMessage> message = MessageOf(one);
    if (!message) continue;
    message->ordinal = ++counts[{message->is_send, message->peer}];
    messages.push_back(*std::move(message));
  }
  return messages;
}

std::vector<MessageLine> MessageLines(const IssuedJob& job) {
  std::vector<MessageLine> lines;
  for (const MessageGroup& group : job.message_groups) {
    std::map<std::pair<std::int64_t, std::int64_t>, MessageLine> by_pair;
    for (const std::vector<IssuedMessage>& issued : group.issued) {
      for (const IssuedMessage& one : issued) {
        const auto [from, to] =
            one.is_send ? std::pair(one.own, one.peer) : std::pair(one.peer, one.own);
        MessageLine& line =
            by_pair.try_emplace({from, to}, MessageLine{&group, from, to}).first->second;
        ++(one.is_send ? line.sent : line.received);
        if (one.call.IsOpen()) ++(one.is_send ? line.open_sends : line.open_receives);
      }
    }
    const auto is_asked = [&](std::int64_t of_group) {
      const auto rank = group.rank_of.find(of_group);
      return !job.is_of_some || (rank != group.rank_of.end() && job.IsAsked(rank->second));
    };
    for (const auto& [pair, line] : by_pair)
      if (is_asked(pair.first) || is_asked(pair.second)) lines.push_back(line);
  }
  return lines;
}

std::size_t MembersOfBatch(const std::vector<const IssuedCollective*>& calls) {
  return calls.size() - (calls.size() > 1 && IsEndOfBatch(*calls.back()) ? 1 : 0);
}

std::string BatchTitle(const std::vector<const IssuedCollective*>& calls) {
  constexpr std::size_t kMost = 4;
  const std::size_t members = MembersOfBatch(calls);
  if (members == 1) return calls.front()->Title();
  std::string text;
  for (std::size_t i = 0; i < std::min(members, kMost); ++i) {
    IssuedCollective unplaced = *calls[i];
    unplaced.file.clear();
    text += (i == 0 ? "" : ", ") + unplaced.Title();
  }
  if (members > kMost) text += fmt::format(", and {} more", members - kMost);
  const std::string place = calls.front()->Place();
  return fmt::format("[{}]{}{}", text, place.empty() ? "" : " from ", place);
}

}  // namespace tlparse
