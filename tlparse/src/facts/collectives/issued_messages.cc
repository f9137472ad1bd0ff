// Sends and receives: whose other end was not issued, and who waits for whom.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/nth.h"
#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostWaits = 6;  // in a sentence

// What a dump does not hold of such a rank is unknown.
bool IsKnown(const IssuingRank& rank) { return rank.has_file && rank.is_whole && !rank.is_cut; }

// How often a rank has issued the other end of the messages of another, that it sends or receives.
std::size_t CountOtherEnds(const MessageGroup& group, std::size_t rank,
                           const IssuedMessage& message) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  if (found == group.ranks.end()) return 0;
  const auto& issued = group.issued[static_cast<std::size_t>(found - group.ranks.begin())];
  return static_cast<std::size_t>(
      std::count_if(issued.begin(), issued.end(), [&](const IssuedMessage& one) {
        return one.is_send != message.is_send && one.peer == message.own;
      }));
}

// The rings of both hold all of their calls, which are counted then.
bool AreCounted(const IssuedJob& job, std::size_t a, std::size_t b) {
  return IsKnown(job.ranks[a]) && IsKnown(job.ranks[b]);
}

// Of rings that have wrapped: the peer has none of the other end that has not ended, nor one that it issued
// later, as it has if its dump is of a later moment of a job that runs.
bool LacksOtherEnd(const MessageGroup& group, std::size_t peer, const IssuedMessage& message) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), peer);
  if (found == group.ranks.end()) return false;
  const auto& issued = group.issued[static_cast<std::size_t>(found - group.ranks.begin())];
  return std::none_of(issued.begin(), issued.end(), [&](const IssuedMessage& one) {
    return one.is_send != message.is_send && one.peer == message.own &&
           (one.call.IsOpen() || one.call.start_ns > message.call.start_ns);
  });
}

// Whether the peer had not issued the other end of a message when its dump was written.
bool IsUnanswered(const IssuedJob& job, const MessageGroup& group, std::size_t rank,
                  std::size_t peer, const IssuedMessage& message) {
  for (const std::size_t one : {rank, peer}) {
    if (!job.ranks[one].has_file || job.ranks[one].is_cut) return false;
  }
  return AreCounted(job, rank, peer) ? CountOtherEnds(group, peer, message) < message.ordinal
                                     : LacksOtherEnd(group, peer, message);
}

// "rank 0 waits in send 0->1 #2", "rank 0 has enqueued send 0->1 #2"
std::string WaitText(const IssuedJob& job, const MessageWait& wait) {
  const IssuedCollective& call = wait.message->call;
  return fmt::format("{} {} {} #{}", RanksText(job, {wait.rank}),
                     call.IsInIt() ? "waits in" : "has enqueued", call.PrintedOp(), call.sequence);
}

// "recv 1<-0"
std::string OtherEnd(const IssuedMessage& message) {
  return message.is_send ? fmt::format("recv {}<-{}", message.peer, message.own)
                         : fmt::format("send {}->{}", message.peer, message.own);
}

// "In order: rank 0 waits in send 0->1 [1024] Float from train.py:10 (#2) for rank 1; …"
std::string InOrder(const IssuedJob& job, const std::vector<const MessageWait*>& waits) {
  std::string text;
  for (std::size_t i = 0; i < std::min(waits.size(), kMostWaits); ++i)
    text += fmt::format("{}{}: {} (#{}) waits for {}", i == 0 ? "" : "; ",
                        RanksText(job, {waits[i]->rank}), waits[i]->message->call.Title(),
                        waits[i]->message->call.sequence, RanksText(job, {waits[i]->peer}));
  if (waits.size() > kMostWaits) text += fmt::format("; and {} more", waits.size() - kMostWaits);
  return Capital(std::move(text));
}

// The last call of a rank in the group.
std::string LastIssued(const IssuedJob& job, const MessageGroup& group, std::size_t rank) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  if (found == group.ranks.end())
    return fmt::format("{} had issued no send or receive on this group",
                       Capital(RanksText(job, {rank})));
  const IssuedCollective& last =
      group.issued[static_cast<std::size_t>(found - group.ranks.begin())].back().call;
  return fmt::format("The last of {} on this group: #{} {}, {}", RanksText(job, {rank}),
                     last.sequence, last.Title(), last.IsDone() ? "ended" : "not ended");
}

CollectiveFinding FindingOf(const MessageWait& wait, FindingKind kind) {
  CollectiveFinding finding;
  const IssuedCollective& call = wait.message->call;
  finding.kind = kind;
  finding.severity = FindingSeverity::kError;
  finding.group = wait.group->name;
  finding.sequence = call.sequence;
  finding.is_p2p = true;
  finding.label = call.label;
  finding.function = call.function;
  finding.file = call.file;
  finding.line = call.line;
  finding.since_us = call.start_ns / 1000;
  return finding;
}

// The waits that end when `root` issues what it has not: for it, for those that wait for it, ….
std::vector<const MessageWait*> Behind(const std::vector<MessageWait>& waits, std::size_t root) {
  RankSet awaited = {root};
  std::vector<const MessageWait*> behind;
  for (bool again = true; again;) {
    again = false;
    for (const MessageWait& wait : waits) {
      if (awaited.count(wait.peer) == 0 ||
          std::find(behind.begin(), behind.end(), &wait) != behind.end())
        continue;
      behind.push_back(&wait);
      again = awaited.insert(wait.rank).second || again;
    }
  }
  return behind;
}

// An error after a long wait.
void SetSeverity(const IssuedJob& job, const MessageWait& wait, CollectiveFinding& finding) {
  const IssuedCollective& call = wait.message->call;
  finding.is_behind_another = call.progress == IssuedProgress::kNotStarted &&
                              HasEarlierOpen(job, nullptr, wait.rank, call.start_ns);
  std::int64_t known_ns = INT64_MIN;
  for (const IssuingRank& rank : job.ranks) known_ns = std::max(known_ns, rank.last_known_ns);
  const bool is_known = call.progress == IssuedProgress::kStarted &&
                        job.ranks[wait.rank].last_known_ns > call.start_ns;
  if (KnowsPace(job))
    finding.severity = SeverityOfWait(job, known_ns - call.start_ns, call.timeout_ms, is_known);
  if (finding.severity == FindingSeverity::kError) return;
  if (finding.is_behind_another) finding.severity = FindingSeverity::kNote;
  finding.is_of_unknown_length = !is_known;
  finding.detail += fmt::format(". {}", kMayBeRunning);
}

// A rank that waits in nothing, and has not issued what others wait for. A send may be ahead of its receive
// for long, a receive waits.
CollectiveFinding NotIssued(const IssuedJob& job, const std::vector<MessageWait>& waits,
                            std::size_t root) {
  const std::vector<const MessageWait*> behind = Behind(waits, root);
  const auto receive = std::find_if(behind.begin(), behind.end(), [&](const MessageWait* wait) {
    return wait->peer == root && !wait->message->is_send &&
           !HasEarlierOpen(job, nullptr, wait->rank, wait->message->call.start_ns);
  });
  const MessageWait& first = receive == behind.end() ? *behind.front() : **receive;
  CollectiveFinding finding = FindingOf(first, FindingKind::kCollectiveNotReached);
  const std::string other_end =
      AreCounted(job, first.rank, root)
          ? fmt::format("its {} {}", Nth(first.message->ordinal), OtherEnd(*first.message))
          : "the " + OtherEnd(*first.message);
  finding.title =
      fmt::format("{} had not issued {} of {} when the recorder was dumped; {}",
                  RanksText(job, {root}), other_end, first.group->Title(), WaitText(job, first));
  finding.detail = InOrder(job, behind) + ". " + LastIssued(job, *first.group, root);
  SetSeverity(job, first, finding);
  finding.ranks = {root};
  finding.cause = fmt::format("a {} was not issued", first.message->is_send ? "receive" : "send");
  finding.advice =
      fmt::format("look at what {} was doing: its stack, its log", RanksText(job, {root}));
  NameOddBatch(job, behind, finding);
  return finding;
}

// Of a message whose other end the peer has issued: that end.
const IssuedMessage* OtherEndOf(const MessageGroup& group, std::size_t peer,
                                const IssuedMessage& message) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), peer);
  if (found == group.ranks.end()) return nullptr;
  for (const IssuedMessage& one :
       group.issued[static_cast<std::size_t>(found - group.ranks.begin())]) {
    if (one.is_send != message.is_send && one.peer == message.own && one.ordinal == message.ordinal)
      return &one;
  }
  return nullptr;
}

// Messages that devices have started and whose other ends wait in the streams of the peers, behind messages
// that wait the same way for the next rank: a circle of ranks, or nothing.
std::vector<MessageWait> CircleOfDevices(const IssuedJob& job) {
  std::map<std::size_t, MessageWait> first;  // by rank
  for (const MessageGroup& group : job.message_groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedMessage& message : group.issued[i]) {
        const auto peer = group.rank_of.find(message.peer);
        if (message.call.progress != IssuedProgress::kStarted || peer == group.rank_of.end())
          continue;
        const IssuedMessage* const other = OtherEndOf(group, peer->second, message);
        if (other != nullptr && other->call.progress == IssuedProgress::kNotStarted)
          first.try_emplace(group.ranks[i],
                            MessageWait{&group, &message, group.ranks[i], peer->second});
      }
    }
  }
  for (const auto& [rank, wait] : first) {
    std::vector<MessageWait> circle = {wait};
    for (auto next = first.find(wait.peer); next != first.end() && circle.size() <= first.size();
         next = first.find(next->second.peer)) {
      if (next->first == rank) return circle;
      circle.push_back(next->second);
    }
  }
  return {};
}

// Ranks that wait for each other, some of them in collectives.
CollectiveFinding MutualWait(const IssuedJob& job, const std::vector<const MessageWait*>& waits,
                             const std::vector<const OpenWait*>& collectives) {
  CollectiveFinding finding = FindingOf(*waits.front(), FindingKind::kCollectiveDivergence);
  RankSet ranks;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    ranks.insert(waits[i]->rank);
    if (i < kMostWaits)
      finding.title += fmt::format("{}{} of {}", i == 0 ? "" : ", ", WaitText(job, *waits[i]),
                                   waits[i]->group->Title());
  }
  finding.detail = InOrder(job, waits);
  for (const OpenWait* const wait : collectives) {
    ranks.insert(wait->waiting.begin(), wait->waiting.end());
    const std::vector<std::size_t> who(wait->waiting.begin(), wait->waiting.end());
    const std::vector<std::size_t> missing(wait->missing.begin(), wait->missing.end());
    const IssuedCollective& call = *wait->line.usual;
    const bool is_one = who.size() == 1;
    finding.title += fmt::format(", {} {} {} #{} of {}", RanksText(job, who),
                                 call.IsInIt() ? (is_one ? "waits in" : "wait in")
                                               : (is_one ? "has enqueued" : "have enqueued"),
                                 call.PrintedOp(), wait->line.sequence, wait->group->Title());
    finding.detail += fmt::format("; {}: {} {} for {}", RanksText(job, who), call.Title(),
                                  is_one ? "waits" : "wait", RanksText(job, missing));
    finding.is_p2p = false;
  }
  finding.detail += ". None of these calls can end before another one of them does";
  finding.ranks.assign(ranks.begin(), ranks.end());
  finding.cause = collectives.empty()
                      ? "sends and receives wait for each other"
                      : "ranks issued sends and receives where others issued a collective";
  const std::string place = waits.front()->message->call.Place();
  const std::string other = collectives.empty() ? waits.back()->message->call.Place()
                                                : collectives.front()->line.usual->Place();
  finding.advice = collectives.empty()
                       ? "let one side receive first, or issue both as one batch "
                         "(batch_isend_irecv)"
                       : "issue sends, receives and collectives in an order that all ranks share";
  if (!place.empty() && !other.empty() && place != other)
    finding.advice += fmt::format(": compare {} with {}", place, other);
  NameOddBatch(job, waits, finding);
  return finding;
}

}  // namespace

std::vector<MessageWait> MessageWaits(const IssuedJob& job) {
  std::vector<MessageWait> waits;
  for (const MessageGroup& group : job.message_groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const std::size_t rank = group.ranks[i];
      for (const IssuedMessage& message : group.issued[i]) {
        const auto peer = group.rank_of.find(message.peer);
        if (!message.call.IsOpen() || peer == group.rank_of.end() ||
            !IsUnanswered(job, group, rank, peer->second, message))
          continue;
        waits.push_back({&group, &message, rank, peer->second});
      }
    }
  }
  std::stable_sort(waits.begin(), waits.end(), [](const MessageWait& a, const MessageWait& b) {
    return a.message->call.start_ns < b.message->call.start_ns;
  });
  return waits;
}

void FindMessageWaits(const IssuedJob& job, const std::vector<MessageWait>& waits,
                      const std::vector<OpenWait>& collectives,
                      std::vector<CollectiveFinding>& findings) {
  RankSet in_message, in_collective;
  for (const MessageWait& wait : waits) in_message.insert(wait.rank);
  for (const OpenWait& wait : collectives)
    in_collective.insert(wait.waiting.begin(), wait.waiting.end());
  RankSet roots, ended;  // `ended`: those whose wait ends with a root's
  const std::size_t before = findings.size();
  for (const MessageWait& wait : waits) {
    if (in_message.count(wait.peer) > 0 || in_collective.count(wait.peer) > 0) continue;
    if (!roots.insert(wait.peer).second) continue;
    for (const MessageWait* const one : Behind(waits, wait.peer)) ended.insert(one->rank);
    findings.push_back(NotIssued(job, waits, wait.peer));
  }
  // Of a job that stands mostly one rank waits in nothing; of one that runs several are at work.
  for (std::size_t i = before; roots.size() > 1 && i < findings.size(); ++i) {
    if (findings[i].severity == FindingSeverity::kWarning && findings[i].is_of_unknown_length)
      findings[i].severity = FindingSeverity::kNote;
  }
  std::vector<const MessageWait*> mutual;
  for (const MessageWait& wait : waits) {
    if (ended.count(wait.rank) == 0) mutual.push_back(&wait);
  }
  if (mutual.empty()) {
    const std::vector<MessageWait> circle = CircleOfDevices(job);
    for (const MessageWait& wait : circle) mutual.push_back(&wait);
    if (mutual.empty()) return;
    findings.push_back(MutualWait(job, mutual, {}));
    SetSeverity(job, circle.back(), findings.back());
    return;
  }
  // A collective that waits for one of them; those that wait for another rank have a finding of its.
  RankSet waiting;
  for (const MessageWait* const wait : mutual) waiting.insert(wait->rank);
  std::vector<const OpenWait*> crossing;
  bool is_awaited_elsewhere = false;
  for (const OpenWait& wait : collectives) {
    const bool holds_peer = std::any_of(mutual.begin(), mutual.end(), [&](const MessageWait* one) {
      return wait.waiting.count(one->peer) > 0;
    });
    if (!holds_peer) continue;
    const bool misses_one = std::any_of(wait.missing.begin(), wait.missing.end(),
                                        [&](std::size_t one) { return waiting.count(one) > 0; });
    misses_one ? crossing.push_back(&wait) : void(is_awaited_elsewhere = true);
  }
  if (crossing.empty() && is_awaited_elsewhere) return;
  findings.push_back(MutualWait(job, mutual, crossing));
}

}  // namespace tlparse
