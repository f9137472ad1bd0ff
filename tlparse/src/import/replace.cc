#include "import/replace.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/file_hash.h"

namespace tlparse {

namespace {

// The tables whose rows belong to a record of the log: record_id REFERENCES record_row.
Result<std::vector<std::string>> TablesOwnedByRecord(Database& database) {
  ASSIGN_OR_RETURN(
      Statement tables,
      database.Prepare("SELECT s.name FROM sqlite_schema s JOIN pragma_foreign_key_list(s.name) f "
                       "WHERE s.type = 'table' AND f.\"table\" = 'record_row' AND "
                       "f.\"from\" = 'record_id'"));
  std::vector<std::string> names;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, tables.Step());
    if (!has_row) return names;
    names.emplace_back(tables.Text(0));
  }
}

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
  ASSIGN_OR_RETURN(const std::vector<std::string> owned_by_record, TablesOwnedByRecord(database));
  for (const std::string& table : owned_by_record) {
    RETURN_IF_ERROR(
        database.Execute(fmt::format("DELETE FROM \"{}\" WHERE record_id {}", table, range)));
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
