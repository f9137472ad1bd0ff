#include "inputs/libtrace/rows.h"

#include <fmt/format.h>

#include <vector>

#include "inputs/input_step.h"
#include "inputs/join/join_notes.h"
#include "inputs/join/join_profile.h"
#include "queries/inputs/libtrace/rows.h"

namespace tlparse {
namespace {

struct Process {
  std::int64_t id = 0, first_record_id = 0, last_record_id = 0;
};

// So that no time in nanoseconds leaves 64 bits.
constexpr std::string_view kIsTimed =
    "start_us BETWEEN 0 AND 2000000000000000 AND duration_ns BETWEEN 0 AND 281474976710656";
// Of the view issued_collective, which has the end from collective_state too.
constexpr std::string_view kIsTimedCollective =
    "start_us BETWEEN 0 AND 2000000000000000 "
    "AND coalesce(duration_ns, 0) BETWEEN 0 AND 281474976710656";
constexpr std::string_view kNoLabel = "libtrace does not say during which compile it was issued";
constexpr std::string_view kNoCompile = "the log of the process holds no compile of this label";

Result<void> RemoveEarlier(Database& database, std::int64_t run_id) {
  std::vector<std::int64_t> ids;
  FOR_EACH_ROW(const ProfileOfLibtrace& row,
               Query<ProfileOfLibtrace>(database, {.run_id = run_id})) {
    ids.push_back(row.id);
  }
  for (const std::int64_t id : ids) RETURN_IF_ERROR(RemoveProfile(database, id));
  if (ids.empty()) return {};
  // Slices and collectives were removed with their records.
  return database.Execute(
      "DELETE FROM compiled_slice_link_row "
      "WHERE slice_id NOT IN (SELECT id FROM compiled_slice_row);"
      "DELETE FROM collective_run_link_row "
      "WHERE collective_run_id NOT IN (SELECT id FROM collective_run_row)");
}

Result<std::vector<Process>> Processes(Database& database, std::int64_t run_id) {
  std::vector<Process> processes;
  FOR_EACH_ROW(const MeasuredProcess& row,
               Query<MeasuredProcess>(database, {.run_id = run_id, .is_timed = kIsTimed})) {
    processes.push_back({row.id, row.first_record_id, row.last_record_id});
  }
  return processes;
}

// Records of one process, in {} as record_id.
constexpr std::string_view kOwn =
    "record_id BETWEEN {1} AND {2} AND record_id IN (SELECT id "
    "FROM record_row WHERE id BETWEEN {1} AND {2} AND process_id = {0})";

// Numbered as in a recorder dump where libtrace has these numbers. One that the backend refused has
// none, as no other rank issued it. The compile is the latest of the
// label; its graph, if it has one only.
Result<void> AddCollectives(Database& database, std::int64_t profile_id,
                            const std::string& collectives, const std::string& name_of) {
  RETURN_IF_ERROR(database.Execute(fmt::format(
      "INSERT INTO collective_run_row (profile_id, record_id, op_id, "
      "group_id, group_size, sequence_number, is_p2p, input_shapes, output_shapes, dtype_id, "
      "reduce_op, state, start_ns, end_ns) SELECT {0}, i.record_id, o.id, g.id, i.group_size, "
      "CASE WHEN i.error IS NOT NULL AND i.duration_ns IS NULL THEN NULL "
      "WHEN i.p2p_seq_id IS NOT NULL THEN i.p2p_seq_id ELSE coalesce(i.collective_seq_id, "
      "i.sequence_number) END, "
      "i.p2p_seq_id IS NOT NULL OR i.op IN ('send', 'recv'), i.input_shapes, i.output_shapes, "
      "d.id, i.reduce_op, CASE WHEN i.error IS NOT NULL THEN 'error' "
      "WHEN i.duration_ns IS NOT NULL THEN 'completed' END, "
      "i.start_us * 1000, i.start_us * 1000 + CAST(i.duration_ns AS INTEGER) "
      "FROM {1} i LEFT JOIN {2} o ON o.text = i.op_name LEFT JOIN {2} g ON g.text = i.group_name "
      "LEFT JOIN {2} d ON d.text = i.dtype ORDER BY i.record_id, i.ordinal",
      profile_id, collectives, name_of)));
  ASSIGN_OR_RETURN(const std::int64_t no_label, NoteId(database, kNoLabel));
  ASSIGN_OR_RETURN(const std::int64_t no_compile, NoteId(database, kNoCompile));
  // The rows of a record were added in the order of their ordinals.
  return database.Execute(fmt::format(
      "INSERT INTO collective_run_link_row (collective_run_id, graph_id, join_key, note_id) "
      "SELECT r.id, CASE WHEN (SELECT count(*) "
      "FROM graph g WHERE g.compile_id = i.compile_id) = 1 THEN (SELECT g.id FROM graph g "
      "WHERE g.compile_id = i.compile_id) END, CASE WHEN i.compile_id IS NOT NULL THEN 'K2' END, "
      "CASE WHEN i.label IS NULL THEN {1} WHEN i.compile_id IS NULL THEN {2} END "
      "FROM (SELECT id, record_id, row_number() OVER (PARTITION BY record_id "
      "ORDER BY id) AS number FROM collective_run_row WHERE profile_id = {0}) r "
      "JOIN (SELECT record_id, label, compile_id, row_number() OVER (PARTITION BY record_id "
      "ORDER BY ordinal) AS number "
      "FROM {3}) i ON i.record_id = r.record_id AND i.number = r.number",
      profile_id, no_label, no_compile, collectives));
}

// Kernels, copies and graph calls.
Result<void> AddRuns(Database& database, std::int64_t profile_id, const Process& process,
                     const std::string& activities, const std::string& calls,
                     const std::string& name_of) {
  RETURN_IF_ERROR(database.Execute(fmt::format(
      "INSERT INTO kernel_run_row (profile_id, name_id, device, stream, start_ns, duration_ns) "
      "SELECT {0}, n.id, "
      "coalesce(a.device, -1), a.stream, CAST(round(a.start_us * 1e3) AS INTEGER), a.duration_ns "
      "FROM {1} a JOIN {2} n ON n.text = a.name "
      "WHERE a.kind = 'kernel' ORDER BY a.record_id, a.ordinal;"
      "INSERT INTO device_copy_row (profile_id, "
      "kind, name_id, device, stream, start_ns, duration_ns, size_bytes) "
      "SELECT {0}, a.kind, n.id, a.device, a.stream, CAST(round(a.start_us * 1e3) AS INTEGER), "
      "a.duration_ns, a.size_bytes FROM {1} a JOIN {2} n ON n.text = a.name "
      "WHERE a.kind IN ('memcpy', 'memset') ORDER BY a.record_id, a.ordinal;"
      "INSERT INTO compiled_slice_row (profile_id, kind, name_id, start_ns, "
      "duration_ns, record_id) SELECT {0}, 6, n.id, c.start_us * 1000, c.duration_ns, c.record_id "
      "FROM {3} c LEFT JOIN {2} n ON n.text = c.label ORDER BY c.record_id;",
      profile_id, activities, name_of, calls)));
  ASSIGN_OR_RETURN(const std::int64_t no_call, NoteId(database, kLaunchNotInLog));
  ASSIGN_OR_RETURN(const std::int64_t no_compile, NoteId(database, kNoCompile));
  // The latest compile of the label; its graph, if it has one only.
  return database.Execute(fmt::format(
      "INSERT INTO kernel_run_link_row (kernel_run_id, note_id) "
      "SELECT id, {2} FROM kernel_run_row WHERE profile_id = {0};"
      "INSERT INTO compiled_slice_link_row (slice_id, is_call, "
      "compile_id, graph_id, join_key, note_id) SELECT s.id, 1, c.id, CASE WHEN (SELECT count(*) "
      "FROM graph g WHERE g.compile_id = c.id) = 1 THEN (SELECT g.id "
      "FROM graph g WHERE g.compile_id = c.id) END, CASE WHEN c.id IS NOT NULL THEN 'K2' END, "
      "CASE WHEN c.id IS NULL THEN {3} END FROM compiled_slice_row s "
      "LEFT JOIN text_row t ON t.id = s.name_id LEFT JOIN compile c ON c.id = (SELECT max(x.id) "
      "FROM compile x WHERE x.process_id = {1} AND x.label = t.text) WHERE s.profile_id = {0}",
      profile_id, process.id, no_call, no_compile));
}

Result<void> AddProcess(Database& database, const Process& process, std::int64_t run_id) {
  const std::string own =
      fmt::format(kOwn, process.id, process.first_record_id, process.last_record_id);
  const std::string activities = "(SELECT * FROM gpu_activity_row WHERE name IS NOT NULL AND " +
                                 std::string(kIsTimed) + " AND " + own + ")";
  const std::string calls =
      "(SELECT * FROM graph_run_row WHERE " + std::string(kIsTimed) + " AND " + own + ")";
  const std::string collectives = fmt::format(
      "(SELECT *, coalesce(backend || ':', '') || op AS op_name "
      "FROM issued_collective WHERE record_id BETWEEN {} AND {} AND process_id = {} AND {})",
      process.first_record_id, process.last_record_id, process.id, kIsTimedCollective);
  ASSIGN_OR_RETURN(const std::int64_t id, database.QueryInt("SELECT max(id) + 1 FROM profile"));
  const std::int64_t profile_id = id > 0 ? id : 1;
  RETURN_IF_ERROR(database.Execute(fmt::format(
      "INSERT INTO profile (id, "
      "run_id, path, kind, process_id, rank, pid, start_us, end_us, event_count, "
      "kept_count, clock_offset_us, process_note, size_bytes, compression, content_hash) "
      "SELECT {0}, {1}, f.path || ' (pid ' || p.pid || coalesce(', rank ' || p.rank, '') || ')', "
      "'libtrace', p.id, p.rank, p.pid, "
      "t.start_us, t.end_us, t.events, t.events, 0, 'written by this process', 0, 'none', '' "
      "FROM process p JOIN log_file f ON f.id = p.log_file_id, "
      "(SELECT CAST(min(start_us) AS INTEGER) AS start_us, CAST(max(end_us) AS INTEGER) AS end_us, "
      "count(*) AS events FROM (SELECT start_us, start_us + duration_ns / 1e3 AS end_us "
      "FROM {3} UNION ALL SELECT start_us, start_us + duration_ns / 1e3 FROM {4} UNION ALL "
      "SELECT start_us, start_us + coalesce(duration_ns, 0) / 1e3 FROM {5})) t WHERE p.id = {2}",
      profile_id, run_id, process.id, activities, calls, collectives)));
  const std::string names = fmt::format(
      "SELECT name FROM {0} UNION SELECT label FROM {1} "
      "UNION SELECT op_name FROM {2} UNION SELECT group_name FROM {2} UNION SELECT dtype FROM {2}",
      activities, calls, collectives);
  const std::string name_of = "(SELECT min(t.id) AS id, t.text FROM text_row t WHERE t.text IN (" +
                              names + ") GROUP BY t.text)";
  RETURN_IF_ERROR(database.Execute(
      fmt::format("INSERT INTO text_row (text) SELECT DISTINCT name "
                  "FROM ({}) WHERE name IS NOT NULL AND name NOT IN (SELECT text FROM text_row);",
                  names)));
  RETURN_IF_ERROR(AddCollectives(database, profile_id, collectives, name_of));
  return AddRuns(database, profile_id, process, activities, calls, name_of);
}

}  // namespace

Result<void> AddLibtraceRows(Database& database, std::int64_t run_id) {
  RETURN_IF_ERROR(RemoveEarlier(database, run_id));
  ASSIGN_OR_RETURN(const std::vector<Process> processes, Processes(database, run_id));
  for (const Process& process : processes) RETURN_IF_ERROR(AddProcess(database, process, run_id));
  return {};
}

}  // namespace tlparse
