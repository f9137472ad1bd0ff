// The collectives of one group by sequence number: which ranks issued what, and which did not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "facts/collectives/issued.h"

namespace tlparse {

// One sequence number of one group. Ranks are indices into IssuedJob::ranks.
struct IssuedLine {
  std::int64_t sequence = 0;
  const IssuedCollective* usual = nullptr;  // what most ranks issued; lives as long as the group
  std::map<std::string, std::vector<std::size_t>> by_title;  // IssuedCollective::Title
  std::vector<std::size_t> done, waiting;
  std::vector<std::size_t> not_started;  // enqueued, not started on the device
  std::vector<std::size_t> enqueued;     // not ended; when calls start is not recorded
  std::vector<std::size_t> issued;       // whether it ended there is not known
  std::vector<std::size_t> timed_out;    // the last one came after its timeout
  // The call returned, in or after one that timed out, that some rank did not reach or that ranks
  // issued differently, or as the last of a group of which a member is unknown: whether it completed
  // is not known.
  std::vector<std::size_t> ended;
  std::vector<std::size_t> missing;  // did not reach it
  // Its file begins with a later number or is cut, is a profile, which covers a part of the job
  // only, there is none, or another rank completed what all must reach.
  std::vector<std::size_t> unknown;
  std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  std::size_t last_rank = 0;    // the rank that came last
  std::int64_t timeout_ns = 0;  // of the first; 0: unknown
  // An earlier collective of the group timed out: ranks whose call failed do not wait in later ones.
  bool is_after_timeout = false;
  // Ranks issued another op, size or type under this number (IssuedSignature).
  bool is_mismatched = false;
  // A rank had ended it before the last one came, which is not possible: their clocks differ.
  bool has_other_clocks = false;
  // Whether WaitNs is known, of a group of several ranks: an unknown rank may have come last, and
  // ranks that are still in it wait on.
  bool HasWait() const {
    return last_ns > INT64_MIN && !is_after_timeout && !IsOpen() && missing.empty() &&
           unknown.empty() && !has_other_clocks;
  }
  // Some rank had not ended it.
  bool IsOpen() const { return !waiting.empty() || !not_started.empty() || !enqueued.empty(); }
  // The last rank came after the timeout of the first.
  bool IsTimedOut() const { return timeout_ns > 0 && last_ns - first_ns > timeout_ns; }
  // How long the first rank waited.
  std::int64_t WaitNs() const { return IsTimedOut() ? timeout_ns : last_ns - first_ns; }
  bool HasLast() const { return HasWait() && WaitNs() > 0; }  // not all came at once
  bool IsOdd() const { return by_title.size() > 1 || !missing.empty(); }
};

// Whether no rank can complete it before all ranks of the group have issued it.
bool NeedsAllRanks(std::string_view plain_op);

// What must be alike of the calls of one number on all ranks: the ops, and where tensors must be of
// one size, that and their type.
std::string IssuedSignature(const std::vector<const IssuedCollective*>& all);

// Ascending by sequence number.
std::vector<IssuedLine> IssuedLines(const IssuedJob& job, const IssuedGroup& group);

// What one rank waited in the collectives whose wait is known (HasWait).
struct RankWait {
  std::size_t rank = 0;  // index into IssuedJob::ranks
  std::int64_t collectives = 0;
  // From its calls to those of the last ranks, at most the timeouts; what several share counts once.
  std::int64_t wait_ns = 0;
  std::int64_t last_in = 0;  // collectives that it was the last to issue
};
// By rank; ranks of none are left out.
std::vector<RankWait> WaitsByRank(const IssuedJob& job);

}  // namespace tlparse
