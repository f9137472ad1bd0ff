#include "report/viewer_tables.h"

namespace tlparse {
namespace {

#define IN_RUN(column)                                                                            \
  column                                                                                          \
      " IN (SELECT p.id FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = " \
      ":run)"
#define COMPILE_IN_RUN(column) column " IN (SELECT id FROM compile WHERE " IN_RUN("process_id") ")"
// Records of compiles :first … :last. The range of ids makes it a search in the table, not a walk
// through all of it.
#define RECORD_OF_COMPILES                                                                       \
  "id BETWEEN (SELECT min(first_record_id) FROM compile WHERE id BETWEEN :first AND :last) AND " \
  "(SELECT max(last_record_id) FROM compile WHERE id BETWEEN :first AND :last)"
#define RECORD_ID_OF_COMPILES "record_" RECORD_OF_COMPILES

constexpr ViewerTable kIndexTables[] = {
    {"run", "id, id = :run AS is_current", "name, created_at, tool_version",
     "FROM run ORDER BY id"},
    {"log_file", "id, size_bytes, record_count, line_count, name_rank", "path, compression",
     "FROM log_file WHERE run_id = :run ORDER BY id"},
    {"process", "id, log_file_id, pid, rank, is_thread_id, utc_offset_s",
     "torch_version, python_version, time_basis",
     "FROM process WHERE " IN_RUN("id") " ORDER BY rank IS NULL, rank, id"},
    {"count", "value", "name",
     "FROM (SELECT 'records' AS name, (SELECT sum(record_count) FROM log_file WHERE run_id = :run) "
     "AS value"
     " UNION ALL SELECT 'bytes', (SELECT sum(size_bytes) FROM log_file WHERE run_id = :run)"
     " UNION ALL SELECT 'compiles', (SELECT count(*) FROM compile WHERE " IN_RUN(
         "process_id") ")"
                       " UNION ALL SELECT 'graphs', (SELECT count(*) FROM graph "
                       "WHERE " COMPILE_IN_RUN(
                           "compile_id") ")"
                                         " UNION ALL SELECT 'graph_breaks', (SELECT count(*) FROM "
                                         "graph_break WHERE " COMPILE_IN_RUN(
                                             "compile_id") ")"
                                                           " UNION ALL SELECT 'recompiles', "
                                                           "(SELECT count(DISTINCT compile_id) "
                                                           "FROM recompile WHERE " COMPILE_IN_RUN(
                                                               "compile_id") ")"
                                                                             " UNION ALL SELECT "
                                                                             "'import_log', "
                                                                             "(SELECT count(*) "
                                                                             "FROM import_log "
                                                                             "WHERE run_id = :run)"
                                                                             " UNION ALL SELECT "
                                                                             "'import_log_first', "
                                                                             "(SELECT min(id) FROM "
                                                                             "import_log WHERE "
                                                                             "run_id = :run)"
                                                                             " UNION ALL SELECT "
                                                                             "'import_log_last', "
                                                                             "(SELECT max(id) FROM "
                                                                             "import_log WHERE "
                                                                             "run_id = :run)"
                                                                             " UNION ALL SELECT "
                                                                             "'provenance_graphs', "
                                                                             "(SELECT count(*) "
                                                                             "FROM graph WHERE "
                                                                             "provenance_content_"
                                                                             "id IS NOT NULL "
                                                                             "AND " COMPILE_IN_RUN(
                                                                                 "compile_id") ")"
                                                                                               " UN"
                                                                                               "ION"
                                                                                               " AL"
                                                                                               "L "
                                                                                               "SEL"
                                                                                               "ECT"
                                                                                               " '"
                                                                                               "col"
                                                                                               "lec"
                                                                                               "tiv"
                                                                                               "es'"
                                                                                               ", "
                                                                                               "(SE"
                                                                                               "LEC"
                                                                                               "T "
                                                                                               "cou"
                                                                                               "nt("
                                                                                               "DIS"
                                                                                               "TIN"
                                                                                               "CT "
                                                                                               "con"
                                                                                               "ten"
                                                                                               "t_"
                                                                                               "id)"
                                                                                               " FR"
                                                                                               "OM "
                                                                                               "col"
                                                                                               "lec"
                                                                                               "tiv"
                                                                                               "e "
                                                                                               "WHE"
                                                                                               "RE"
                                                                                               " " IN_RUN(
                                                                                                   "process_id") ")"
                                                                                                                 " UNION ALL SELECT 'executions', (SELECT count(*) FROM graph_execution WHERE " IN_RUN(
                                                                                                                     "process_id") ")"
                                                                                                                                   " UNION ALL SELECT 'export_records', (SELECT count(*) FROM record WHERE kind IN ('guard_added', 'guard_added_fast',"
                                                                                                                                   " 'propagate_real_tensors', 'propagate_real_tensors_provenance', 'guard_on_data_dependent_error', 'missing_fake_kernel',"
                                                                                                                                   " 'mismatched_fake_kernel', 'exported_program', 'create_unbacked_symbol') AND " IN_RUN(
                                                                                                                                       "process_id") "))"},
    {"cache_state", "count(*) AS events, count(DISTINCT process_id) AS processes", "layer, state",
     "FROM cache_event WHERE " IN_RUN("process_id") " GROUP BY layer, state ORDER BY layer, state"},
    {"import_code", "count(*) AS entries", "severity, code",
     "FROM import_log WHERE run_id = :run GROUP BY severity, code ORDER BY severity, code"},
    {"failure_group",
     "count(*) AS failures, count(DISTINCT r.process_id) AS processes, min(f.compile_id) AS "
     "compile_id, f.user_line",
     "f.kind, f.type, substr(f.reason, 1, 2000) AS reason, f.user_file",
     "FROM failure f JOIN record r ON r.id = f.record_id WHERE " IN_RUN(
         "r.process_id") " GROUP BY f.kind, f.type, f.reason, f.user_file, f.user_line ORDER BY "
                         "count(*) DESC LIMIT 100"},
    {"graph_break_group", "count(*) AS breaks, min(compile_id) AS compile_id, user_line",
     "substr(reason, 1, 2000) AS reason, user_file",
     "FROM graph_break WHERE " COMPILE_IN_RUN(
         "compile_id") " GROUP BY reason, user_file, user_line ORDER BY count(*) DESC LIMIT 100"},
    {"recompile_group",
     "count(*) AS recompiles, max(m.compile_id) AS compile_id, m.user_line, c.line",
     "substr(m.guard, 1, 2000) AS guard, substr(min(m.reason), 1, 2000) AS reason, m.user_file, "
     "c.function, c.file",
     "FROM recompile m JOIN compile c ON c.id = m.compile_id WHERE m.ordinal = 0 AND " IN_RUN(
         "c.process_id") " GROUP BY m.guard, m.user_file, m.user_line, c.function, c.file, c.line "
                         "ORDER BY count(*) DESC LIMIT 100"},
};

constexpr ViewerTable kCompilesTables[] = {
    {"compile",
     "c.id, c.process_id, c.rank, c.start_time_us - :origin AS start_us, c.duration_us, "
     "c.backward_duration_us,"
     " c.compiled_autograd_id, c.frame_id, c.frame_compile_id, c.generation, c.line, c.stack_id, "
     "c.is_synthetic,"
     " coalesce(a.n, 1) AS attempts, coalesce(g.n, 0) AS graphs, coalesce(b.n, 0) AS graph_breaks, "
     "coalesce(m.n, 0) AS recompiles,"
     " f.dynamo_us, f.aot_autograd_us, f.inductor_us, f.code_gen_us, w.start_time_us - :origin AS "
     "backward_start_us,"
     " w.inductor_us AS backward_inductor_us, f.graph_op_count AS ops, f.guard_count AS guards,"
     " coalesce(e.hits, 0) AS hits, coalesce(e.misses, 0) AS misses, coalesce(e.guard_misses, 0) "
     "AS guard_misses,"
     " coalesce(e.bypasses, 0) AS bypasses, coalesce(e.disabled, 0) AS disabled",
     "c.label, c.status, c.function, c.file, f.fail_type, substr(f.fail_reason, 1, 500) AS "
     "fail_reason",
     "FROM compile c"
     " LEFT JOIN (SELECT compile_id, count(*) AS n FROM attempt GROUP BY compile_id) a ON "
     "a.compile_id = c.id"
     " LEFT JOIN (SELECT compile_id, count(*) AS n FROM graph GROUP BY compile_id) g ON "
     "g.compile_id = c.id"
     " LEFT JOIN (SELECT compile_id, count(*) AS n FROM graph_break GROUP BY compile_id) b ON "
     "b.compile_id = c.id"
     " LEFT JOIN (SELECT compile_id, count(*) AS n FROM recompile GROUP BY compile_id) m ON "
     "m.compile_id = c.id"
     " LEFT JOIN (SELECT compile_id, sum(dynamo_us) AS dynamo_us, sum(aot_autograd_us) AS "
     "aot_autograd_us,"
     " sum(inductor_us) AS inductor_us, sum(code_gen_us) AS code_gen_us, max(graph_op_count) AS "
     "graph_op_count,"
     " max(guard_count) AS guard_count, max(fail_type) AS fail_type, max(fail_reason) AS "
     "fail_reason"
     " FROM compilation_metric WHERE kind = 'compilation_metrics' GROUP BY compile_id) f ON "
     "f.compile_id = c.id"
     " LEFT JOIN (SELECT compile_id, min(start_time_us) AS start_time_us, sum(inductor_us) AS "
     "inductor_us"
     " FROM compilation_metric WHERE kind IN ('bwd_compilation_metrics', "
     "'aot_autograd_backward_compilation_metrics')"
     " GROUP BY compile_id) w ON w.compile_id = c.id"
     " LEFT JOIN (SELECT compile_id, sum(state = 'hit') AS hits, sum(state = 'miss') AS misses,"
     " sum(state = 'guard_miss') AS guard_misses, sum(state = 'bypass') AS bypasses, sum(state = "
     "'disabled') AS disabled"
     " FROM cache_event GROUP BY compile_id) e ON e.compile_id = c.id"
     " WHERE " IN_RUN("c.process_id") " ORDER BY c.id"},
    {"frame", "id, parent_id, line", "file, function, code",
     "FROM (WITH RECURSIVE used(id) AS (SELECT stack_id FROM compile WHERE stack_id IS NOT NULL "
     "AND " IN_RUN("process_id") " UNION SELECT s.parent_id FROM used u JOIN stack_frame s ON s.id "
                                 "= u.id WHERE s.parent_id IS NOT NULL)"
                                 " SELECT s.id, s.parent_id, s.line, s.file, s.function, s.code "
                                 "FROM used u JOIN stack_frame s ON s.id = u.id) ORDER BY id"},
};

constexpr ViewerTable kProblemsTables[] = {
    {"failure", "f.id, f.record_id, f.compile_id, f.attempt, f.user_line, r.process_id",
     "f.kind, f.type, substr(f.reason, 1, 20000) AS reason, f.user_file",
     "FROM failure f JOIN record r ON r.id = f.record_id WHERE " IN_RUN(
         "r.process_id") " ORDER BY f.id"},
    {"graph_break", "record_id, compile_id, attempt, user_line",
     "substr(reason, 1, 20000) AS reason, substr(user_stack, 1, 20000) AS user_stack, user_file",
     "FROM graph_break WHERE " COMPILE_IN_RUN("compile_id") " ORDER BY record_id"},
    {"recompile", "record_id, ordinal, compile_id, prior_compile_id, user_line",
     "prior_label, substr(reason, 1, 20000) AS reason, substr(guard, 1, 20000) AS guard, user_file",
     "FROM recompile WHERE " COMPILE_IN_RUN("compile_id") " ORDER BY record_id, ordinal"},
};

constexpr ViewerTable kGraphsTables[] = {
    {"graph", "id, compile_id, ordinal, record_id, code_record_id, provenance_content_id",
     "direction, subgraph_name, aot_id, cache_key",
     "FROM graph WHERE " COMPILE_IN_RUN("compile_id") " ORDER BY id"},
};

// One graph stands for all that share the same kernels.
#define GRAPH_OF_PROVENANCE(where)                                               \
  "SELECT min(id) FROM graph WHERE provenance_content_id IS NOT NULL AND " where \
  " GROUP BY provenance_content_id"

constexpr ViewerTable kKernelsTables[] = {
    {"kernel", "g.provenance_content_id AS content_id, k.id, k.debug_handle, k.code_line", "k.name",
     "FROM kernel k JOIN graph g ON g.id = k.graph_id WHERE g.id IN (" GRAPH_OF_PROVENANCE(
         COMPILE_IN_RUN("compile_id")) ") ORDER BY k.id"},
    {"artifact",
     "count(*) AS records, count(DISTINCT compile_id) AS compiles, compile_id, min(id) AS "
     "record_id",
     "coalesce(name, kind) AS title",
     "FROM record WHERE compile_id IS NOT NULL AND kind IS NOT 'chromium_event' AND " IN_RUN(
         "process_id") " GROUP BY kind, name ORDER BY title"},
};

constexpr ViewerTable kCompileTables[] = {
    {"record",
     "r.id, r.compile_id, r.line, r.byte_offset, r.time_us - :origin AS time_us, r.attempt, "
     "r.source_line, p.size_bytes,"
     " r.stack_id, r.user_stack_id",
     "r.kind, r.name, r.subgraph_name, r.payload_hash, r.payload_state, r.source_file,"
     " CASE WHEN r.kind NOT LIKE '%compilation_metrics%' THEN r.metadata END AS metadata",
     "FROM record r LEFT JOIN payload_row p ON p.id = r.payload_id WHERE r." RECORD_OF_COMPILES
     " AND r.compile_id BETWEEN :first AND :last AND r.kind IS NOT 'chromium_event' ORDER BY r.id"},
    {"attempt", "compile_id, attempt", "restart_reason",
     "FROM attempt WHERE compile_id BETWEEN :first AND :last ORDER BY compile_id, attempt"},
    {"graph_text", "compile_id, graph_id, record_id, content_id", "stage",
     "FROM graph_text WHERE " RECORD_ID_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last ORDER BY record_id"},
    {"output_code", "compile_id, graph_id, record_id, content_id", "path",
     "FROM output_code WHERE " RECORD_ID_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last ORDER BY record_id"},
    {"metric", "compile_id, record_id", "kind, metrics",
     "FROM compilation_metric WHERE " RECORD_ID_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last ORDER BY record_id"},
    {"guard_tree", "compile_id, record_id, content_id", "",
     "FROM guard_use WHERE " RECORD_ID_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last ORDER BY record_id"},
    {"triton_kernel", "compile_id, graph_id, record_id, num_configs, compile_time_us",
     "name, autotune_cache_state, config",
     "FROM triton_kernel WHERE " RECORD_ID_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last ORDER BY record_id, name"},
    {"op", "compile_id, graph_id, record_id, ordinal, estimated_ns", "name, type, assumed_unit",
     "FROM op_runtime WHERE " RECORD_ID_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last ORDER BY record_id, ordinal"},
    {"frame", "id, parent_id, line", "file, function, code",
     "FROM (WITH RECURSIVE used(id) AS (SELECT s FROM (SELECT stack_id AS s FROM record "
     "WHERE " RECORD_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last AND kind IS NOT 'chromium_event' UNION SELECT "
     "user_stack_id FROM record WHERE " RECORD_OF_COMPILES
     " AND compile_id BETWEEN :first AND :last AND kind IS NOT 'chromium_event') WHERE s IS NOT "
     "NULL"
     " UNION SELECT s.parent_id FROM used u JOIN stack_frame s ON s.id = u.id WHERE s.parent_id IS "
     "NOT NULL)"
     " SELECT s.id, s.parent_id, s.line, s.file, s.function, s.code FROM used u JOIN stack_frame s "
     "ON s.id = u.id) ORDER BY id"},
};

#define RECORD_OF_PROCESS                                                                         \
  "id BETWEEN (SELECT f.first_record_id FROM log_file f JOIN process p ON p.log_file_id = f.id "  \
  "WHERE p.id = :first) AND "                                                                     \
  "(SELECT f.last_record_id FROM log_file f JOIN process p ON p.log_file_id = f.id WHERE p.id = " \
  ":first)"

constexpr ViewerTable kProcessTables[] = {
    {"record",
     "r.id, r.line, r.byte_offset, r.time_us - :origin AS time_us, r.source_line, p.size_bytes, "
     "r.stack_id, r.user_stack_id",
     "r.kind, r.name, r.subgraph_name, r.payload_hash, r.payload_state, r.source_file, r.metadata",
     "FROM record r LEFT JOIN payload_row p ON p.id = r.payload_id WHERE r." RECORD_OF_PROCESS
     " AND r.process_id = :first AND " IN_RUN(
         "r.process_id") " AND r.compile_id IS NULL AND r.kind IS NOT 'chromium_event' AND r.kind "
                         "IS NOT 'str' ORDER BY r.id"},
};

// One record stands for all that share the same guard tree.
constexpr ViewerTable kGuardsTables[] = {
    {"guard", "content_id, ordinal, depth, user_line",
     "kind, expression, source, user_file, user_code",
     "FROM guard WHERE record_id IN (SELECT min(record_id) FROM guard_use WHERE content_id BETWEEN "
     ":first AND :last"
     " GROUP BY content_id) ORDER BY content_id, ordinal"},
};

#define KERNELS_OF_BLOCK                                           \
  "SELECT id FROM kernel WHERE graph_id IN (" GRAPH_OF_PROVENANCE( \
      "provenance_content_id BETWEEN :first AND :last") ")"

constexpr ViewerTable kProvenanceTables[] = {
    {"kernel",
     "k.id, g.provenance_content_id AS content_id, k.ordinal, k.debug_handle, k.code_line",
     "k.name",
     "FROM kernel k JOIN graph g ON g.id = k.graph_id WHERE g.id IN (" GRAPH_OF_PROVENANCE(
         "provenance_content_id BETWEEN :first AND :last") ") ORDER BY k.id"},
    {"kernel_node", "kernel_id", "post_grad_node",
     "FROM kernel_node WHERE kernel_id IN (" KERNELS_OF_BLOCK
     ") ORDER BY kernel_id, post_grad_node"},
    {"node_mapping", "g.provenance_content_id AS content_id", "m.post_grad_node, m.pre_grad_node",
     "FROM node_mapping m JOIN graph g ON g.id = m.graph_id WHERE g.id IN (" GRAPH_OF_PROVENANCE(
         "provenance_content_id BETWEEN :first AND :last") ") ORDER BY 1, 2, 3"},
    {"kernel_source", "kernel_id, stack_ordinal, frame_ordinal, line",
     "file, function, code, basis",
     "FROM kernel_source WHERE kernel_id IN (" KERNELS_OF_BLOCK
     ") ORDER BY kernel_id, stack_ordinal, frame_ordinal"},
};

constexpr ViewerTable kCacheTables[] = {
    {"cache_event",
     "id, record_id, compile_id, graph_id, process_id, component_set_id, parent_event_id, "
     "time_saved_ns, time_taken_ns",
     "layer, state, key, direction, components_state, status_detailed, bypass_reason, "
     "guard_expression",
     "FROM cache_event WHERE " IN_RUN("process_id") " ORDER BY id"},
};

// A set is a sequence of stretches of stored lists. Read through the view component_set_member,
// each set would be written out in full: 64 ranks with keys of their own would cost a thousand
// times the space. So this one reads the lists themselves.
constexpr ViewerTable kSetsTables[] = {
    {"set_run", "set_id, ordinal, length, list_id, list_ordinal", "",
     "FROM component_run WHERE set_id IN (SELECT component_set_id FROM cache_event WHERE " IN_RUN(
         "process_id") ") ORDER BY set_id, ordinal"},
    {"list_member", "list_id, ordinal, component_id", "",
     "FROM component_list_row WHERE list_id IN (SELECT list_id FROM component_run WHERE set_id IN "
     "(SELECT component_set_id"
     " FROM cache_event WHERE " IN_RUN("process_id") ")) ORDER BY list_id, ordinal"},
};

constexpr ViewerTable kComponentsTables[] = {
    {"component", "c.id", "n.text AS name, c.hash, c.value",
     "FROM component c JOIN text n ON n.id = c.name_id WHERE c.id BETWEEN :first AND :last ORDER "
     "BY c.id"},
};

constexpr ViewerTable kSchedulesTables[] = {
    {"schedule_use",
     "u.record_id, u.compile_id, u.graph_id, u.content_id, r.process_id, u.source AS is_code", "",
     "FROM collective_use u JOIN record r ON r.id = u.record_id WHERE " IN_RUN(
         "r.process_id") " ORDER BY u.record_id, u.source"},
    {"collective", "content_id, ordinal, is_wait, code_line",
     "op, arguments, group_name, shape, dtype",
     "FROM collective WHERE (record_id, source) IN (SELECT min(record_id), CASE source WHEN 0 THEN "
     "'schedule' ELSE 'code' END"
     " FROM collective_use GROUP BY content_id) ORDER BY content_id, ordinal"},
    {"execution_use", "process_id, record_id, first_ordinal, content_id", "",
     "FROM graph_execution_use WHERE " IN_RUN("process_id") " ORDER BY process_id, first_ordinal"},
    {"execution", "e.content_id, e.ordinal - u.first_ordinal AS ordinal", "e.label",
     "FROM graph_execution e JOIN graph_execution_use u ON u.record_id = e.record_id WHERE "
     "e.record_id IN (SELECT min(record_id)"
     " FROM graph_execution_use GROUP BY content_id) ORDER BY e.content_id, ordinal"},
};

constexpr ViewerTable kEventsTables[] = {
    {"event", "record_id, start_us - :origin AS start_us, duration_us, compile_id", "name, phase",
     "FROM chromium_event WHERE record_" RECORD_OF_PROCESS
     " AND process_id = :first AND " IN_RUN("process_id") " ORDER BY start_us, duration_us DESC"},
};

constexpr ViewerTable kArgsTables[] = {
    {"event_args", "record_id", "args",
     "FROM chromium_event WHERE record_id BETWEEN :first AND :last AND " IN_RUN(
         "process_id") " ORDER BY record_id"},
};

constexpr ViewerTable kImportLogTables[] = {
    {"import_log", "id, log_file_id, record_id, line, byte_offset, line_count",
     "severity, code, message, advice, CAST(substr(text, 1, 4096) AS TEXT) AS text",
     "FROM import_log WHERE run_id = :run AND id BETWEEN :first AND :last ORDER BY id"},
};

#define EXPORT_STACKS(view) "SELECT user_stack_id AS s FROM " view " WHERE " IN_RUN("process_id")
constexpr ViewerTable
    kExportTables
        [] =
            {
                {"guard", "record_id, process_id, compile_id, user_stack_id",
                 "kind, expression, symbol_to_sources, frame_locals, node_id",
                 "FROM symbolic_guard WHERE " IN_RUN("process_id") " ORDER BY record_id"},
                {"propagation", "record_id, process_id, compile_id, user_stack_id",
                 "kind, expression, result, node_id",
                 "FROM real_tensor_propagation WHERE " IN_RUN("process_id") " ORDER BY record_id"},
                {"fake_kernel", "record_id, process_id, compile_id", "kind, op, reason",
                 "FROM fake_kernel_issue WHERE " IN_RUN("process_id") " ORDER BY record_id"},
                {"symbol", "record_id, process_id, compile_id, user_stack_id",
                 "kind, name, value, range, source, node_id",
                 "FROM symbol WHERE " IN_RUN("process_id") " ORDER BY record_id"},
                {"symbolic_expression", "record_id, user_stack_id",
                 "method, result, result_id, arguments, argument_ids",
                 "FROM symbolic_expression WHERE " IN_RUN("process_id") " ORDER BY record_id"},
                {"exported_program", "r.id AS record_id, r.process_id, p.size_bytes",
                 "r.payload_hash",
                 "FROM record r LEFT JOIN payload_row p ON p.id = r.payload_id WHERE r.kind = "
                 "'exported_program' AND " IN_RUN("r.process_id") " ORDER BY r.id"},
                {"frame", "id, parent_id, line", "file, function, code",
                 "FROM (WITH RECURSIVE used(id) AS (SELECT s FROM (" EXPORT_STACKS("symbolic_guard") " UNION " EXPORT_STACKS("real_tensor_propagation") " UNION " EXPORT_STACKS(
                     "symbol") " UNION " EXPORT_STACKS("symbolic_expression") ") WHERE s IS NOT "
                                                                              "NULL"
                                                                              " UNION SELECT "
                                                                              "s.parent_id FROM "
                                                                              "used u JOIN "
                                                                              "stack_frame s ON "
                                                                              "s.id = u.id WHERE "
                                                                              "s.parent_id IS NOT "
                                                                              "NULL)"
                                                                              " SELECT s.id, "
                                                                              "s.parent_id, "
                                                                              "s.line, s.file, "
                                                                              "s.function, s.code "
                                                                              "FROM used u JOIN "
                                                                              "stack_frame s ON "
                                                                              "s.id = u.id) ORDER "
                                                                              "BY id"},
};

constexpr ViewerChunkSpec kSpecs[] = {
    {"index", ChunkRange::kNone, kIndexTables},
    {"compiles", ChunkRange::kNone, kCompilesTables},
    {"problems", ChunkRange::kNone, kProblemsTables},
    {"graphs", ChunkRange::kNone, kGraphsTables},
    {"kernels", ChunkRange::kNone, kKernelsTables},
    {"compile", ChunkRange::kItem, kCompileTables},
    {"process", ChunkRange::kItem, kProcessTables},
    {"guards", ChunkRange::kItem, kGuardsTables},
    {"provenance", ChunkRange::kItem, kProvenanceTables},
    {"cache", ChunkRange::kNone, kCacheTables},
    {"sets", ChunkRange::kNone, kSetsTables},
    {"components", ChunkRange::kPer4096, kComponentsTables},
    {"schedules", ChunkRange::kNone, kSchedulesTables},
    {"events", ChunkRange::kItem, kEventsTables},
    {"args", ChunkRange::kPer1024, kArgsTables},
    {"import_log", ChunkRange::kPer4096, kImportLogTables},
    {"export", ChunkRange::kNone, kExportTables},
};

}  // namespace

std::span<const ViewerChunkSpec> ViewerChunkSpecs() { return kSpecs; }

}  // namespace tlparse
