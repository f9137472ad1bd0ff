#include "import/replace.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file_hash.h"
#include "queries/import/replace.h"
#include "store/any_rows.h"

namespace tlparse {

namespace {

// The tables whose rows belong to a record of the log: record_id REFERENCES record_row.
Result<std::vector<std::string>> TablesOwnedByRecord(Database& database) {
  std::vector<std::string> names;
  FOR_EACH_ROW(
      const AnyRow& row,
      AnyRows::Of(database,
                  "SELECT s.name FROM sqlite_schema s JOIN pragma_foreign_key_list(s.name) f "
                  "WHERE s.type = 'table' "
                  "AND f.\"table\" = 'record_row' AND f.\"from\" = 'record_id'")) {
    names.emplace_back(row.Text("name"));
  }
  return names;
}

// A column that refers to a table's rows.
struct Reference {
  std::string table;
  std::string column;
};

Result<std::vector<Reference>> References(Database& database, const std::string& query) {
  std::vector<Reference> references;
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, query)) {
    references.push_back({std::string(row.Text("name")), std::string(row.Text("from"))});
  }
  return references;
}

constexpr char kReferencesTo[] =
    "SELECT s.name, f.\"from\" FROM sqlite_schema s JOIN pragma_foreign_key_list(s.name) f "
    "WHERE s.type = 'table' AND f.\"table\" = '{}' AND {}";

// Content that was first derived from removed records: if other records use it, it gets one of
// these as its record; else it is removed and derived again from the current log. `range`: the
// ids of the removed records.
Result<void> SettleContents(Database& database, const std::string& range) {
  constexpr char kOfRecord[] =
      "EXISTS (SELECT 1 FROM pragma_foreign_key_list(s.name) r "
      "WHERE r.\"table\" = 'record_row' AND r.\"from\" = 'record_id')";
  constexpr char kOfContent[] =
      "NOT EXISTS (SELECT 1 FROM pragma_foreign_key_list(s.name) r "
      "WHERE r.\"table\" = 'record_row' AND r.\"from\" = 'record_id') "
      "AND s.name NOT IN ('graph', 'payload_content_row')";
  RETURN_IF_ERROR(database.Execute(fmt::format(
      "CREATE TEMP TABLE settled AS SELECT id FROM content_row WHERE record_id {0};"
      "CREATE TEMP TABLE user (content_id INTEGER, record_id INTEGER);"
      "INSERT INTO user SELECT provenance_content_id, coalesce(code_record_id, record_id) "
      "FROM graph WHERE provenance_content_id IN settled;"
      "INSERT INTO user SELECT p.content_id, min(r.id) "
      "FROM payload_content_row p JOIN record_row r ON r.payload_id = p.payload_id "
      "WHERE p.content_id IN settled GROUP BY 1;",
      range)));
  ASSIGN_OR_RETURN(const std::vector<Reference> users,
                   References(database, fmt::format(kReferencesTo, "content_row", kOfRecord)));
  for (const auto& [table, column] : users) {
    RETURN_IF_ERROR(
        database.Execute(fmt::format("INSERT INTO user SELECT \"{0}\", min(record_id) "
                                     "FROM \"{1}\" WHERE \"{0}\" IN settled GROUP BY 1",
                                     column, table)));
  }
  RETURN_IF_ERROR(
      database.Execute("CREATE INDEX temp.user_by_content ON user(content_id);"
                       "UPDATE content_row SET record_id = (SELECT min(u.record_id) "
                       "FROM user u WHERE u.content_id = content_row.id) WHERE id IN settled;"
                       "DELETE FROM settled WHERE id IN (SELECT content_id FROM user)"));
  ASSIGN_OR_RETURN(const std::vector<Reference> parts,
                   References(database, fmt::format(kReferencesTo, "content_row", kOfContent)));
  for (const auto& [table, column] : parts) {
    // What belongs to such a row has its id as part of the key (kernel_node_row.kernel_id).
    ASSIGN_OR_RETURN(
        const std::vector<Reference> details,
        References(database, fmt::format(kReferencesTo, table,
                                         "EXISTS (SELECT 1 FROM pragma_table_info(s.name) k "
                                         "WHERE k.name = f.\"from\" AND k.pk > 0)")));
    for (const Reference& detail : details) {
      RETURN_IF_ERROR(database.Execute(fmt::format(
          "DELETE FROM \"{}\" WHERE \"{}\" IN (SELECT id FROM \"{}\" WHERE \"{}\" IN settled)",
          detail.table, detail.column, table, column)));
    }
    RETURN_IF_ERROR(
        database.Execute(fmt::format("DELETE FROM \"{}\" WHERE \"{}\" IN settled", table, column)));
  }
  return database.Execute(
      "DELETE FROM content_row WHERE id IN settled; DROP TABLE settled; DROP TABLE user");
}

}  // namespace

Result<bool> ReplaceChangedLog(Database& database, std::int64_t run_id, const std::string& path,
                               bool may_be_renamed) {
  {
    ASSIGN_OR_RETURN(const FirstRow<LogsOfRun> logs,
                     First(Query<LogsOfRun>(database, {.run_id = run_id})));
    if (!logs || logs->count == 0) return false;
  }
  ASSIGN_OR_RETURN(const std::string hash, HashFile(path));
  ASSIGN_OR_RETURN(
      Statement same,
      database.Prepare(
          "SELECT 1 FROM log_file "
          "WHERE run_id = ? AND content_hash = ? AND (path = ? OR ? AND size_bytes > 0)"));
  same.Bind(1, run_id);
  same.Bind(2, std::string_view(hash));
  same.Bind(3, std::string_view(path));
  same.Bind(4, std::int64_t{may_be_renamed});
  ASSIGN_OR_RETURN(const bool is_same, same.Step());
  if (is_same) return true;
  RETURN_IF_ERROR(RemoveLog(database, run_id, path));
  return false;
}

namespace {

// The ids of a log's records, in SQL; nothing: the run has no such log.
struct LogRows {
  std::int64_t log_file_id = 0;
  std::string range;
};

Result<std::optional<LogRows>> FindLog(Database& database, std::int64_t run_id,
                                       const std::string& path) {
  ASSIGN_OR_RETURN(const FirstRow<LogOfPath> log,
                   First(Query<LogOfPath>(database, {.run_id = run_id, .path = path})));
  if (!log) return std::nullopt;
  return LogRows{log->id, fmt::format("BETWEEN {} AND {}", log->first_record_id.value_or(1),
                                      log->last_record_id.value_or(0))};
}

// All but the records themselves, payloads and contents.
Result<void> RemoveTypedRows(Database& database, const LogRows& log) {
  const auto& [log_file_id, range] = log;
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
  return database.Execute(fmt::format("DELETE FROM process WHERE log_file_id = {}", log_file_id));
}

// Of the payloads in the temporary table `orphan`.
constexpr char kRemoveOrphanPayloads[] =
    "DELETE FROM payload_content_row WHERE payload_id IN (SELECT id FROM orphan);"
    "DELETE FROM payload_hash_row "
    "WHERE hash IN (SELECT p.hash FROM payload_row p JOIN orphan o ON o.id = p.id);"
    "DELETE FROM payload_row WHERE id IN (SELECT id FROM orphan);"
    "DROP TABLE orphan;";

}  // namespace

Result<void> RemoveLogRows(Database& database, std::int64_t run_id, const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<LogRows> log, FindLog(database, run_id, path));
  if (!log) return {};
  RETURN_IF_ERROR(RemoveTypedRows(database, *log));
  return database.Execute(
      fmt::format("DELETE FROM record_row WHERE id {}; DELETE FROM log_file WHERE id = {}",
                  log->range, log->log_file_id));
}

Result<void> RemoveOrphans(Database& database) {
  RETURN_IF_ERROR(
      database.Execute(fmt::format("CREATE TEMP TABLE orphan AS SELECT id FROM payload_row EXCEPT "
                                   "SELECT payload_id FROM record_row WHERE payload_id IS NOT NULL;"
                                   "{}",
                                   kRemoveOrphanPayloads)));
  return SettleContents(database, "NOT IN (SELECT id FROM record_row)");
}

Result<void> RemoveLog(Database& database, std::int64_t run_id, const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<LogRows> log, FindLog(database, run_id, path));
  if (!log) return {};
  RETURN_IF_ERROR(RemoveTypedRows(database, *log));
  // Payloads that no other record uses are removed with their records.
  RETURN_IF_ERROR(database.Execute(
      fmt::format("CREATE TEMP TABLE orphan AS SELECT DISTINCT payload_id AS id "
                  "FROM record_row WHERE id {0} AND payload_id IS NOT NULL EXCEPT "
                  "SELECT payload_id FROM record_row WHERE id NOT {0} AND payload_id IS NOT NULL;"
                  "{1} DELETE FROM record_row WHERE id {0};",
                  log->range, kRemoveOrphanPayloads)));
  RETURN_IF_ERROR(SettleContents(database, log->range));
  return database.Execute(fmt::format("DELETE FROM log_file WHERE id = {}", log->log_file_id));
}

}  // namespace tlparse
