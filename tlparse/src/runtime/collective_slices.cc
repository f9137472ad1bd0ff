#include "runtime/collective_slices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collective_op.h"

namespace tlparse {
namespace {

struct Collective {
  std::int64_t id = 0;
  std::string op;
  std::optional<std::int64_t> group_id, sequence;
  std::int64_t start_ns = 0, end_ns = 0;
  bool is_taken = false;
};

Result<std::vector<Collective>> Load(Database& database, std::int64_t process_id, bool from_dump) {
  ASSIGN_OR_RETURN(
      Statement * rows,
      database.PrepareKept(
          "SELECT c.id, o.text, c.group_id, c.sequence_number, c.start_ns, coalesce(c.end_ns, "
          "c.start_ns) FROM collective_run_row c JOIN profile p ON p.id = c.profile_id LEFT JOIN "
          "text_row o ON o.id = c.op_id LEFT JOIN collective_run_link_row l ON l.collective_run_id "
          "= c.id WHERE p.process_id = ?1 AND (c.entry_id IS NOT NULL) = ?2 AND c.is_p2p = 0 AND "
          "c.start_ns IS NOT NULL AND (?2 = 0 OR l.peer_id IS NULL) ORDER BY c.start_ns, c.id"));
  rows->Reset();
  rows->Bind(1, process_id);
  rows->Bind(2, std::int64_t{from_dump ? 1 : 0});
  std::vector<Collective> all;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows->Step());
    if (!has_row) return all;
    all.push_back({rows->Int(0), std::string(rows->Text(1)), rows->OptionalInt(2),
                   rows->OptionalInt(3), rows->Int(4), rows->Int(5)});
  }
}

Collective* Find(std::vector<Collective>& entries, const Collective& slice) {
  if (slice.group_id && slice.sequence) {
    for (Collective& entry : entries) {
      if (!entry.is_taken && entry.group_id == slice.group_id && entry.sequence == slice.sequence)
        return &entry;
    }
    return nullptr;
  }
  auto at = std::lower_bound(
      entries.begin(), entries.end(), slice.start_ns,
      [](const Collective& entry, std::int64_t time_ns) { return entry.start_ns < time_ns; });
  for (; at != entries.end() && at->start_ns <= slice.end_ns; ++at) {
    if (!at->is_taken && MayBeRecordedAs(slice.op, at->op)) return &*at;
  }
  return nullptr;
}

}  // namespace

Result<void> JoinCollectiveSlices(Database& database, std::int64_t run_id) {
  std::vector<std::int64_t> processes;
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT DISTINCT process_id FROM profile WHERE run_id = ? AND kind = "
                       "'flight_recorder' AND process_id IS NOT NULL"));
  rows.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    processes.push_back(rows.Int(0));
  }
  ASSIGN_OR_RETURN(
      Statement link,
      database.Prepare("INSERT INTO collective_run_link_row (collective_run_id, graph_id, "
                       "code_line, file_id, line, "
                       "reduce_op, peer_id, join_key) SELECT ?1, graph_id, code_line, file_id, "
                       "line, reduce_op, ?2, 'K8' "
                       "FROM collective_run_link_row WHERE collective_run_id = ?2 "
                       "ON CONFLICT (collective_run_id) DO UPDATE SET graph_id = "
                       "coalesce(graph_id, excluded.graph_id), "
                       "code_line = coalesce(code_line, excluded.code_line), file_id = "
                       "coalesce(file_id, excluded.file_id), "
                       "line = coalesce(line, excluded.line), reduce_op = coalesce(reduce_op, "
                       "excluded.reduce_op), "
                       "peer_id = excluded.peer_id, join_key = excluded.join_key, note_id = NULL"));
  for (const std::int64_t process_id : processes) {
    ASSIGN_OR_RETURN(std::vector<Collective> entries, Load(database, process_id, true));
    ASSIGN_OR_RETURN(std::vector<Collective> slices, Load(database, process_id, false));
    // Inner slices begin later: they are asked first.
    for (auto slice = slices.rbegin(); slice != slices.rend(); ++slice) {
      Collective* const entry = Find(entries, *slice);
      if (entry == nullptr) continue;
      entry->is_taken = true;
      link.Bind(1, slice->id);
      link.Bind(2, entry->id);
      RETURN_IF_ERROR(link.Run());
    }
  }
  return {};
}

}  // namespace tlparse
