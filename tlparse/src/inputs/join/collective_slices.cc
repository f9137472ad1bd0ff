#include "inputs/join/collective_slices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inputs/common/collective_op.h"
#include "inputs/join/join_profile.h"
#include "queries/inputs/join/collective_slices.h"

namespace tlparse {
namespace {

struct Collective {
  std::int64_t id = 0;
  std::string op;
  std::optional<std::int64_t> group_id, sequence;
  std::int64_t start_ns = 0, end_ns = 0;
  bool is_taken = false;
};

// Those of a process that stand for themselves, by time.
Result<std::vector<Collective>> Load(Database& database, std::int64_t process_id,
                                     IssuedSource source) {
  std::vector<Collective> all;
  FOR_EACH_ROW(
      const JoinableCollective& row,
      KeptQuery<JoinableCollective>(
          database, {.process_id = process_id, .source = static_cast<std::int64_t>(source)})) {
    all.push_back(
        {row.id, std::string(row.op), row.group_id, row.sequence_number, row.start_ns, row.end_ns});
  }
  return all;
}

// The collectives of the preferred source, each to be found once.
class Known {
 public:
  explicit Known(std::vector<Collective> all) : all_(std::move(all)) {
    for (std::size_t i = all_.size(); i > 0; --i) {
      const Collective& one = all_[i - 1];
      if (one.group_id && one.sequence) by_number_[{*one.group_id, *one.sequence}].push_back(i - 1);
    }
  }
  // By group and number; a slice without these, by its op and time.
  const Collective* Take(const Collective& slice) {
    if (slice.group_id && slice.sequence) {
      const auto found = by_number_.find({*slice.group_id, *slice.sequence});
      if (found == by_number_.end() || found->second.empty()) return nullptr;
      const std::size_t earliest = found->second.back();
      found->second.pop_back();
      all_[earliest].is_taken = true;
      return &all_[earliest];
    }
    auto at = std::lower_bound(
        all_.begin(), all_.end(), slice.start_ns,
        [](const Collective& one, std::int64_t time_ns) { return one.start_ns < time_ns; });
    for (; at != all_.end() && at->start_ns <= slice.end_ns; ++at) {
      if (at->is_taken || !MayBeRecordedAs(slice.op, at->op)) continue;
      at->is_taken = true;
      return &*at;
    }
    return nullptr;
  }

 private:
  std::vector<Collective> all_;
  // Indexes, the earliest last.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> by_number_;
};

constexpr const char* kLinkSlice =
    "INSERT INTO collective_run_link_row (collective_run_id, "
    "graph_id, code_line, file_id, line, reduce_op, peer_id, join_key) "
    "SELECT ?1, graph_id, code_line, file_id, line, reduce_op, ?2, 'K8' "
    "FROM collective_run_link_row WHERE collective_run_id = ?2 ON CONFLICT (collective_run_id) DO "
    "UPDATE SET graph_id = coalesce(graph_id, excluded.graph_id), code_line = coalesce(code_line, "
    "excluded.code_line), file_id = coalesce(file_id, excluded.file_id), "
    "line = coalesce(line, excluded.line), reduce_op = coalesce(reduce_op, excluded.reduce_op), "
    "peer_id = excluded.peer_id, join_key = excluded.join_key, note_id = NULL";

// What an entry lacks and its slice has: the graph call around it. An entry without frames learns
// from its slice too that it ran outside any graph call.
constexpr const char* kLinkEntry =
    "UPDATE collective_run_link_row AS e "
    "SET (graph_id, slice_id, join_key, note_id) = (SELECT s.graph_id, s.slice_id, "
    "CASE WHEN s.graph_id IS NOT NULL THEN 'J3' END, CASE WHEN s.graph_id IS NULL THEN ?3 END "
    "FROM collective_run_link_row s WHERE s.collective_run_id = ?1) "
    "WHERE (e.collective_run_id = ?2 OR e.collective_run_id IN (SELECT collective_run_id "
    "FROM collective_run_link_row WHERE peer_id = ?2 AND collective_run_id <> ?1)) "
    "AND e.graph_id IS NULL AND EXISTS (SELECT 1 FROM collective_run_row c "
    "JOIN recorder_entry_row r ON r.id = c.entry_id WHERE c.id = ?2 AND r.stack_id IS NULL)";

constexpr std::string_view kSliceOutside = "its slice in the profile ran outside any graph call";

}  // namespace

Result<void> JoinCollectiveSlices(Database& database, std::int64_t run_id) {
  std::vector<std::int64_t> processes;
  FOR_EACH_ROW(const ProcessWithProfile& row,
               Query<ProcessWithProfile>(database, {.run_id = run_id})) {
    processes.push_back(row.process_id);
  }
  ASSIGN_OR_RETURN(const std::int64_t outside, NoteId(database, kSliceOutside));
  ASSIGN_OR_RETURN(Statement link_slice, database.Prepare(kLinkSlice));
  ASSIGN_OR_RETURN(Statement link_entry, database.Prepare(kLinkEntry));
  for (const std::int64_t process_id : processes) {
    for (const auto& [from, to] : {std::pair(IssuedSource::kDump, IssuedSource::kProfile),
                                   std::pair(IssuedSource::kDump, IssuedSource::kLibtrace),
                                   std::pair(IssuedSource::kProfile, IssuedSource::kLibtrace)}) {
      ASSIGN_OR_RETURN(std::vector<Collective> slices, Load(database, process_id, to));
      if (slices.empty()) continue;
      ASSIGN_OR_RETURN(std::vector<Collective> preferred, Load(database, process_id, from));
      Known known(std::move(preferred));
      // Inner slices begin later: they are asked first. Numbers are asked in their order.
      std::stable_partition(slices.begin(), slices.end(),
                            [](const Collective& one) { return !one.sequence; });
      std::reverse(slices.begin(),
                   std::find_if(slices.begin(), slices.end(),
                                [](const Collective& one) { return !!one.sequence; }));
      for (const Collective& slice : slices) {
        const Collective* const entry = known.Take(slice);
        if (entry == nullptr) continue;
        if (from == IssuedSource::kDump && to == IssuedSource::kProfile) {
          link_entry.Bind(1, slice.id);
          link_entry.Bind(2, entry->id);
          link_entry.Bind(3, outside);
          RETURN_IF_ERROR(link_entry.Run());
        }
        link_slice.Bind(1, slice.id);
        link_slice.Bind(2, entry->id);
        RETURN_IF_ERROR(link_slice.Run());
      }
    }
  }
  return {};
}

}  // namespace tlparse
