// The sends and receives in profiles, and between which ranks they are.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// The sends and receives of a rank in its profile.
struct ProfiledMessages {
  std::int64_t rank = 0;
  std::int64_t sends = 0, receives = 0;
  // How long the rank, or its device, was inside of them; those that share time count it each. Nothing:
  // the profile does not show when they ended.
  std::optional<std::int64_t> send_ns = {}, receive_ns = {};
  std::int64_t without_peer = 0;  // calls of both kinds whose peer is not known
};

// Those from one rank to another, by the profiles of both. Nothing: it has no profile.
struct ProfiledPair {
  std::int64_t from = 0, to = 0;
  std::optional<std::int64_t> sends = {}, receives = {};
  std::optional<std::int64_t> send_ns = {}, receive_ns = {};  // as in ProfiledMessages
};

// Kernels of NCCL name the rank at the other end. With record_shapes c10d's sends and receives have its number in
// their group, and the profile the groups of its rank, but not which of them a call is of. Where its groups
// differ on who that is, a rank whose profile has no call with this one is not the other end; if several are
// left, it is not known.
struct ProfiledTraffic {
  std::vector<ProfiledMessages> ranks;  // ascending
  std::vector<ProfiledPair> pairs;      // by `from`, then by `to`
  bool has_all_peers = false;           // there are calls, and of each the peer is known
  bool Has(std::int64_t one, std::int64_t other) const;  // calls between them, in any direction
};
Result<ProfiledTraffic> LoadProfiledTraffic(Database& database, std::int64_t run_id);

}  // namespace tlparse
