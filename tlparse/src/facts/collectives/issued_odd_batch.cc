// A batch of sends and receives that lacks a member, or has one more: the sends of a rank and the receives
// of its peer are paired in their order, so that those of later batches stand.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

// What one rank issued in one batch in one direction with one peer.
struct BatchPart {
  const IssuedCollective* call = nullptr;  // the first
  std::size_t count = 0;
};

std::vector<BatchPart> PartsOf(const MessageGroup& group, std::size_t rank, std::int64_t peer,
                               bool is_send) {
  std::vector<BatchPart> parts;
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  if (found == group.ranks.end()) return parts;
  for (const IssuedMessage& one :
       group.issued[static_cast<std::size_t>(found - group.ranks.begin())]) {
    if (one.is_send != is_send || one.peer != peer) continue;
    if (parts.empty() || parts.back().call->sequence != one.call.sequence)
      parts.push_back({&one.call, 0});
    ++parts.back().count;
  }
  return parts;
}

// The place of the only batch in which the counts of two ranks differ, behind some that agree.
std::optional<std::size_t> OnlyDifference(const std::vector<BatchPart>& a,
                                          const std::vector<BatchPart>& b) {
  constexpr std::size_t kFewestBefore = 3;
  const std::size_t count = std::min(a.size(), b.size());
  if (std::max(a.size(), b.size()) > count + 1) return std::nullopt;
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < count; ++i) {
    if (a[i].count == b[i].count) continue;
    if (place || i < kFewestBefore) return std::nullopt;
    place = i;
  }
  return place;
}

std::string PartText(const BatchPart& part, bool is_send, const std::string& peer) {
  return fmt::format("{} {}{} {} {}", part.count, is_send ? "send" : "receive",
                     part.count == 1 ? "" : "s", is_send ? "to" : "from", peer);
}

}  // namespace

void NameOddBatch(const IssuedJob& job, const std::vector<const MessageWait*>& waits,
                  CollectiveFinding& finding) {
  for (const MessageWait* const wait : waits) {
    const IssuingRank &waiting = job.ranks[wait->rank], &awaited = job.ranks[wait->peer];
    if (!waiting.is_whole || !awaited.is_whole) continue;
    const bool is_send = wait->message->is_send;
    const std::vector<BatchPart> parts =
        PartsOf(*wait->group, wait->rank, wait->message->peer, is_send);
    const std::vector<BatchPart> others =
        PartsOf(*wait->group, wait->peer, wait->message->own, !is_send);
    const std::optional<std::size_t> at = OnlyDifference(parts, others);
    if (!at) continue;
    // The odd one is that of which the batch before was another one.
    const bool is_own = parts[*at].count != parts[*at - 1].count;
    if (is_own == (others[*at].count != others[*at - 1].count)) continue;
    const std::size_t odd = is_own ? wait->rank : wait->peer;
    const std::size_t usual = is_own ? wait->peer : wait->rank;
    const BatchPart &part = is_own ? parts[*at] : others[*at],
                    &other = is_own ? others[*at] : parts[*at];
    const std::string odd_rank = RanksText(job, {odd}), usual_rank = RanksText(job, {usual});
    finding.detail = fmt::format("{}. {}", Capital(finding.title), finding.detail);
    finding.title = fmt::format(
        "{} issued {} in batch #{} of {}, {} {}: later ones are paired with those of other batches",
        odd_rank, PartText(part, is_own == is_send, usual_rank), part.call->sequence,
        wait->group->Title(), usual_rank, PartText(other, is_own != is_send, odd_rank));
    finding.kind = FindingKind::kCollectiveDivergence;
    finding.severity = FindingSeverity::kError;
    finding.ranks = {odd};
    finding.group = wait->group->name;
    finding.sequence = part.call->sequence;
    finding.is_p2p = true;
    finding.file = part.call->file;
    finding.line = part.call->line;
    finding.since_us = part.call->start_ns / 1000;
    finding.cause = "a batch lacks a send or a receive, or has one more";
    finding.advice =
        fmt::format("compare what {} and {} give to batch_isend_irecv{}", odd_rank, usual_rank,
                    part.call->Place().empty() ? "" : " at " + part.call->Place());
    return;
  }
}

}  // namespace tlparse
