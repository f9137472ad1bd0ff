#include "report/record_scan.h"

#include <fmt/format.h>

namespace tlparse {

Result<TextCache> TextCache::Open(Database& database) {
  TextCache cache;
  ASSIGN_OR_RETURN(cache.statement_, database.Prepare("SELECT text FROM text WHERE id = ?"));
  return cache;
}

Result<std::string_view> TextCache::Get(std::int64_t id) {
  if (id == 0) return std::string_view();
  const auto known = texts_.find(id);
  if (known != texts_.end()) return std::string_view(known->second);
  statement_.Bind(1, id);
  ASSIGN_OR_RETURN(const bool has_row, statement_.Step());
  const auto added = texts_.emplace(id, has_row ? std::string(statement_.Text(0)) : std::string());
  statement_.Reset();
  return std::string_view(added.first->second);
}

Result<PayloadReader> PayloadReader::Open(Database& database) {
  PayloadReader reader;
  // Two statements: the content of a large payload is only touched where it is needed.
  ASSIGN_OR_RETURN(reader.head_,
                   database.Prepare("SELECT hash, size_bytes FROM payload_row WHERE id = ?"));
  ASSIGN_OR_RETURN(reader.content_,
                   database.Prepare("SELECT content FROM payload_row WHERE id = ?"));
  return reader;
}

Result<void> PayloadReader::Seek(std::int64_t id, Statement& statement) {
  statement.Reset();
  statement.Bind(1, id);
  ASSIGN_OR_RETURN(const bool has_row, statement.Step());
  if (!has_row) {
    return Fail(ErrorCode::kDatabase, fmt::format("the database lacks payload {}", id));
  }
  return {};
}

Result<std::string> PayloadReader::Hash(std::int64_t id) {
  RETURN_IF_ERROR(Seek(id, head_));
  return std::string(head_.Text(0));
}

Result<std::int64_t> PayloadReader::SizeBytes(std::int64_t id) {
  RETURN_IF_ERROR(Seek(id, head_));
  return head_.Int(1);
}

Result<std::string_view> PayloadReader::Content(std::int64_t id) {
  RETURN_IF_ERROR(Seek(id, content_));
  return content_.Text(0);
}

Result<Statement> SelectRecords(Database& database, const Participant& participant,
                                std::string_view columns, std::string_view joins,
                                std::string_view condition) {
  std::string processes;
  if (!participant.whole_log) {
    processes = " AND r.process_id IN (";
    for (const ReportProcess& process : participant.processes) {
      processes += fmt::format("{},", process.id);
    }
    processes.back() = ')';
  }
  return database.Prepare(
      fmt::format("SELECT {} FROM record_row r {} WHERE r.id BETWEEN {} AND {}{}{}{} ORDER BY r.id",
                  columns, joins, participant.first_record_id, participant.last_record_id,
                  processes, condition.empty() ? "" : " AND ", condition));
}

}  // namespace tlparse
