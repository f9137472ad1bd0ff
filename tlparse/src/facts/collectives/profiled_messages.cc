#include "facts/collectives/profiled_messages.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "facts/collectives/issued_members.h"
#include "queries/facts/collectives/profiled_messages.h"

namespace tlparse {
namespace {

// The calls of a rank in one direction whose peers have one name.
struct Calls {
  std::set<std::int64_t> peers;  // that it may be
  std::int64_t count = 0;
  std::optional<std::int64_t> ns;
};
// By rank, whether it sends, and the peer as in the file.
using CallKey =
    std::tuple<std::int64_t, bool, std::optional<std::int64_t>, std::optional<std::int64_t>>;
using CallsByKey = std::map<CallKey, Calls>;
using Groups = std::map<std::int64_t, std::vector<std::vector<std::int64_t>>>;  // by rank

void AddNs(std::optional<std::int64_t>& sum_ns, std::int64_t ns) {
  sum_ns = sum_ns.value_or(0) + ns;
}

std::set<std::int64_t> PeersOf(const CallKey& key, const Groups& groups) {
  const auto& [rank, is_send, peer_rank, peer_of_group] = key;
  if (peer_rank) return {*peer_rank};
  const auto found = groups.find(rank);
  if (!peer_of_group || *peer_of_group < 0 || found == groups.end()) return {};
  std::set<std::int64_t> peers;
  for (const std::vector<std::int64_t>& ranks : found->second) {
    const auto place = static_cast<std::size_t>(*peer_of_group);
    const bool is_in = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    if (is_in && place < ranks.size() && ranks[place] != rank) peers.insert(ranks[place]);
  }
  return peers;
}

// Whether a rank has a call the other way round that may be with `peer`.
bool MayAnswer(const CallsByKey& all, std::int64_t rank, bool is_send, std::int64_t peer) {
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    const bool is_its = std::get<0>(one.first) == rank && std::get<1>(one.first) == is_send;
    return is_its && (one.second.peers.empty() || one.second.peers.contains(peer));
  });
}

void LeaveOutOthers(const std::set<std::int64_t>& profiled, CallsByKey& all) {
  for (bool again = true; again;) {
    again = false;
    for (auto& [key, calls] : all) {
      if (calls.peers.size() < 2) continue;
      const std::int64_t rank = std::get<0>(key);
      const bool is_send = std::get<1>(key);
      std::set<std::int64_t> left = calls.peers;
      std::erase_if(left, [&](std::int64_t peer) {
        return profiled.contains(peer) && !MayAnswer(all, peer, !is_send, rank);
      });
      if (left.empty() || left.size() == calls.peers.size()) continue;
      calls.peers = std::move(left);
      again = true;
    }
  }
}

struct GlooCall {
  std::int64_t start_ns = 0, duration_ns = 0;
};
// By profile, thread and whether it sends; ascending.
using GlooCalls = std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::vector<GlooCall>>;

// How long the call lasts that began inside of this one.
std::optional<std::int64_t> GlooNs(const GlooCalls& gloo, const ProfiledMessageRow& row) {
  const auto found = gloo.find(std::tuple(row.profile_id, row.thread_id, row.is_send));
  if (found == gloo.end()) return std::nullopt;
  const auto call =
      std::lower_bound(found->second.begin(), found->second.end(), row.start_ns,
                       [](const GlooCall& one, std::int64_t ns) { return one.start_ns < ns; });
  if (call == found->second.end() || call->start_ns > row.end_ns) return std::nullopt;
  return call->duration_ns;
}

Result<CallsByKey> LoadCalls(Database& database, std::int64_t run_id, const GlooCalls& gloo,
                             std::map<std::int64_t, ProfiledMessages>& ranks) {
  CallsByKey calls;
  FOR_EACH_ROW(const ProfiledMessageRow& row,
               Query<ProfiledMessageRow>(database, {.run_id = run_id})) {
    const auto ns = row.device_ns ? row.device_ns : GlooNs(gloo, row);
    ProfiledMessages& of_rank = ranks[row.rank];
    (row.is_send ? of_rank.sends : of_rank.receives) += 1;
    if (row.device_ns) AddNs(row.is_send ? of_rank.send_ns : of_rank.receive_ns, *row.device_ns);
    Calls& same = calls[{row.rank, row.is_send, row.peer_rank, row.peer_of_group}];
    same.count += 1;
    if (ns) AddNs(same.ns, *ns);
  }
  return calls;
}

Result<GlooCalls> LoadGlooCalls(Database& database, std::int64_t run_id,
                                std::map<std::int64_t, ProfiledMessages>& ranks) {
  GlooCalls gloo;
  FOR_EACH_ROW(const GlooMessage& row, Query<GlooMessage>(database, {.run_id = run_id})) {
    gloo[{row.profile_id, row.thread_id, row.is_send}].push_back({row.start_ns, row.duration_ns});
    ProfiledMessages& of_rank = ranks[row.rank];
    AddNs(row.is_send ? of_rank.send_ns : of_rank.receive_ns, row.duration_ns);
  }
  return gloo;
}

void AddPairs(const CallsByKey& all, const std::set<std::int64_t>& profiled,
              std::map<std::int64_t, ProfiledMessages>& ranks, ProfiledTraffic& traffic) {
  std::map<std::pair<std::int64_t, std::int64_t>, ProfiledPair> pairs;
  for (const auto& [key, calls] : all) {
    const auto& [rank, is_send, peer_rank, peer_of_group] = key;
    if (calls.peers.size() != 1) {
      ranks[rank].without_peer += calls.count;
      continue;
    }
    const std::int64_t peer = *calls.peers.begin();
    ProfiledPair& pair = pairs[is_send ? std::pair(rank, peer) : std::pair(peer, rank)];
    std::optional<std::int64_t>& count = is_send ? pair.sends : pair.receives;
    count = count.value_or(0) + calls.count;
    if (calls.ns) AddNs(is_send ? pair.send_ns : pair.receive_ns, *calls.ns);
  }
  for (auto& [ends, pair] : pairs) {
    std::tie(pair.from, pair.to) = ends;
    if (!pair.sends && profiled.contains(pair.from)) pair.sends = 0;
    if (!pair.receives && profiled.contains(pair.to)) pair.receives = 0;
    traffic.pairs.push_back(pair);
  }
}

}  // namespace

bool ProfiledTraffic::Has(std::int64_t one, std::int64_t other) const {
  return std::any_of(pairs.begin(), pairs.end(), [&](const ProfiledPair& pair) {
    return (pair.from == one && pair.to == other) || (pair.from == other && pair.to == one);
  });
}

Result<ProfiledTraffic> LoadProfiledTraffic(Database& database, std::int64_t run_id) {
  ProfiledTraffic traffic;
  std::map<std::int64_t, ProfiledMessages> ranks;
  ASSIGN_OR_RETURN(const GlooCalls gloo, LoadGlooCalls(database, run_id, ranks));
  ASSIGN_OR_RETURN(CallsByKey calls, LoadCalls(database, run_id, gloo, ranks));
  if (calls.empty()) return traffic;
  std::set<std::int64_t> profiled;
  FOR_EACH_ROW(const RankWithProfile& row, Query<RankWithProfile>(database, {.run_id = run_id}))
    profiled.insert(row.rank);
  Groups groups;
  FOR_EACH_ROW(const GroupOfProfiledRank& row,
               Query<GroupOfProfiledRank>(database, {.run_id = run_id}))
    groups[row.rank].push_back(RanksInText(row.ranks));
  for (auto& [key, one] : calls) one.peers = PeersOf(key, groups);
  LeaveOutOthers(profiled, calls);
  AddPairs(calls, profiled, ranks, traffic);
  traffic.has_all_peers = true;
  for (auto& [rank, one] : ranks) {
    if (one.sends + one.receives == 0) continue;
    one.rank = rank;
    traffic.has_all_peers = traffic.has_all_peers && one.without_peer == 0;
    traffic.ranks.push_back(one);
  }
  return traffic;
}

}  // namespace tlparse
