// What exceptions say of ranks by number, where PyTorch compared the ranks before it raised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/job/exits.h"

namespace tlparse {

// Ranks that did the same.
struct ComparedSide {
  std::vector<std::int64_t> ranks;  // ascending
  std::string op;                   // "all_reduce"; empty: models were compared
  std::string what;                 // "[8, 8] Float", of a call without tensors empty; "4"
  std::string sequence;             // number of the call in its group; empty: not known
};

// Calls by TORCH_DISTRIBUTED_DEBUG=DETAIL (torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp), or numbers of
// parameters by DistributedDataParallel (torch/csrc/distributed/c10d/reducer.cpp).
struct ComparedRanks {
  std::vector<ComparedSide> sides;  // at least two, those of fewest ranks first

  bool IsOfCalls() const { return !sides.front().op.empty(); }
  // The last side has more ranks than the others together: these are the odd ones.
  bool HasMajority() const;
};
// By all messages together, as each names two ranks; nothing: none compares ranks.
std::optional<ComparedRanks> CompareByMessages(const Exceptions& raised);

// Ranks that had not reached torch.distributed.monitored_barrier, by the exception of rank 0
// (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp).
struct MonitoredBarrier {
  std::vector<std::int64_t> missing;  // ascending
  std::int64_t waited_ms = 0;
};
std::optional<MonitoredBarrier> MissingAtBarrier(std::string_view message);
// Whether its numbers are ranks of the job, and not of a group: the call of rank 0, `raised`, names no
// group, or another rank beside those named has its own number there.
bool IsOfAllRanks(const MonitoredBarrier& barrier, const FatalException& raised,
                  const Exceptions& all);

// The rank for whose address gloo waited in vain when it connected the ranks of a group: "wait timeout after 10000ms,
// keys: /default_pg/0//cpu//0/2" (gloo/rendezvous/context.cc: a rank's key is its number).
std::optional<std::int64_t> MissingInStore(std::string_view message);

// Whether a text of PyTorch or of gloo says that collectives of several ranks did not match.
bool SaysMismatch(std::string_view text);

}  // namespace tlparse
