// libtrace_collective_log: the collectives that this rank issued, in order, with the arguments
// given to the process group. Compare it across ranks, or with inductor_collective_schedule.
// Schemas: libtrace_collective_log.schema.json, libtrace_collective_state.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/array_view.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct IssuedCollective {
  // Within the process group, as issued, from 0; refused ones are counted.
  uint64_t sequence_number = 0;
  std::string op{};             // all_reduce, all_gather, … (c10d's name without decoration)
  std::string process_group{};  // its name; ranks of one group agree on it
  std::optional<uint32_t> group_size{};
  std::optional<std::string> backend{};  // gloo, nccl
  std::vector<std::vector<int64_t>> input_shapes{};
  std::vector<std::vector<int64_t>> output_shapes{};
  std::string dtype{};                     // of the first tensor; "" = none (barrier)
  std::optional<std::string> reduce_op{};  // sum, avg, …
  std::optional<int64_t> root_rank{};
  std::optional<int64_t> start_us{};  // since the epoch
  // Until completion, empty if it has not been seen to complete.
  std::optional<double> duration_ns{};
  std::optional<std::string> compile_id{};  // of the graph that issued it
  // Within the group from 1, as c10d's flight recorder counts: of a collective, or of a send or
  // receive. Coalesced collectives share one; one that the backend refuses takes none.
  std::optional<uint64_t> collective_seq_id{};
  std::optional<uint64_t> p2p_seq_id{};
  // What the backend said. Without a duration it refused the call, so that the peers do not wait for
  // it; with one the collective failed after that time.
  std::optional<std::string> error{};
};

// libtrace_collective_state: the end of a collective that was written when it was issued, or the
// number of those that were not written.
struct CollectiveState {
  std::string process_group{};
  uint64_t sequence_number = 0;
  std::optional<double> duration_ns{};        // until completion, or until it failed
  std::optional<uint64_t> unwritten_count{};  // collectives of this process, so far
  // As in IssuedCollective. A refused one had taken no collective_seq_id: the next has that number.
  std::optional<std::string> error{};
};

void EmitCollectiveState(const CollectiveState& state,
                         CallSite location = CallSite::Current()) noexcept;

void EmitCollectiveLog(ArrayView<IssuedCollective> collectives,
                       CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT
