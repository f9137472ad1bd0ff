#include "import/replace.h"

#include <fmt/format.h>

#include <array>

#include "base/file_hash.h"

namespace tlparse {

namespace {

// Tables whose rows belong to a record of the log, by that record's id.
constexpr std::array kOwnedByRecord = {
    "chromium_event_row",    "compilation_metric_row", "failure_row",     "graph_break_row",
    "recompile_row",         "guard_use_row",          "graph_text_row",  "output_code_row",
    "cache_event_row",       "collective_use_row",     "op_list_use_row", "graph_execution_use_row",
    "triton_kernel_use_row", "compile_record_row",     "model_load",      "model_package",
    "package_file",          "package_kernel",         "model_weight",    "graph_value",
    "cache_bundle",          "cache_bundle_key",       "trace_writer",    "trace_loss",
    "lost_record",           "issued_collective_row",  "graph_run_row",   "measured_op_row",
    "gpu_activity_row",      "gpu_activity_log"};

}  // namespace

Result<bool> ReplaceChangedLog(Database& database, std::int64_t run_id, const std::string& path) {
  ASSIGN_OR_RETURN(Statement any,
                   database.Prepare("SELECT count(*) FROM log_file WHERE run_id = ?"));
  any.Bind(1, run_id);
  ASSIGN_OR_RETURN(const bool has_any, any.Step());
  if (!has_any || any.Int(0) == 0) return false;
  any.Reset();
  ASSIGN_OR_RETURN(const std::string hash, HashFile(path));
  ASSIGN_OR_RETURN(
      Statement same,
      database.Prepare("SELECT 1 FROM log_file WHERE run_id = ? AND content_hash = ? AND "
                       "(path = ? OR size_bytes > 0)"));
  same.Bind(1, run_id);
  same.Bind(2, std::string_view(hash));
  same.Bind(3, std::string_view(path));
  ASSIGN_OR_RETURN(const bool is_same, same.Step());
  if (is_same) return true;
  RETURN_IF_ERROR(RemoveLog(database, run_id, path));
  return false;
}

Result<void> RemoveLog(Database& database, std::int64_t run_id, const std::string& path) {
  ASSIGN_OR_RETURN(Statement find,
                   database.Prepare("SELECT id, first_record_id, last_record_id FROM log_file "
                                    "WHERE run_id = ? AND path = ?"));
  find.Bind(1, run_id);
  find.Bind(2, std::string_view(path));
  ASSIGN_OR_RETURN(const bool exists, find.Step());
  if (!exists) return {};
  const std::int64_t log_file_id = find.Int(0);
  const std::int64_t first = find.IsNull(1) ? 1 : find.Int(1);
  const std::int64_t last = find.IsNull(2) ? 0 : find.Int(2);
  find.Reset();
  const std::string range = fmt::format("BETWEEN {} AND {}", first, last);
  const std::string processes =
      fmt::format("(SELECT id FROM process WHERE log_file_id = {})", log_file_id);
  const std::string compiles =
      fmt::format("(SELECT id FROM compile WHERE process_id IN {})", processes);
  for (const char* table : kOwnedByRecord) {
    RETURN_IF_ERROR(
        database.Execute(fmt::format("DELETE FROM {} WHERE record_id {}", table, range)));
  }
  RETURN_IF_ERROR(
      database.Execute(fmt::format("DELETE FROM graph WHERE compile_id IN {}", compiles)));
  RETURN_IF_ERROR(
      database.Execute(fmt::format("DELETE FROM attempt WHERE compile_id IN {}", compiles)));
  RETURN_IF_ERROR(
      database.Execute(fmt::format("DELETE FROM compile WHERE process_id IN {}", processes)));
  RETURN_IF_ERROR(database.Execute(
      fmt::format("DELETE FROM import_log_row WHERE log_file_id = {}", log_file_id)));
  RETURN_IF_ERROR(
      database.Execute(fmt::format("DELETE FROM process WHERE log_file_id = {}", log_file_id)));
  // Content outlives the log it came from first; payloads that nobody else uses go with their
  // records.
  RETURN_IF_ERROR(database.Execute(
      fmt::format("UPDATE content_row SET record_id = NULL WHERE record_id {}", range)));
  RETURN_IF_ERROR(database.Execute(fmt::format(
      "CREATE TEMP TABLE orphan AS SELECT DISTINCT payload_id AS id FROM record_row WHERE id {0} "
      "AND payload_id IS NOT NULL "
      "EXCEPT SELECT payload_id FROM record_row WHERE id NOT {0} AND payload_id IS NOT NULL;"
      "DELETE FROM payload_content_row WHERE payload_id IN (SELECT id FROM orphan);"
      "DELETE FROM payload_hash_row WHERE hash IN (SELECT p.hash FROM payload_row p JOIN orphan o "
      "ON "
      "o.id = p.id);"
      "DELETE FROM payload_row WHERE id IN (SELECT id FROM orphan);"
      "DROP TABLE orphan;"
      "DELETE FROM record_row WHERE id {0};",
      range)));
  return database.Execute(fmt::format("DELETE FROM log_file WHERE id = {}", log_file_id));
}

}  // namespace tlparse
