#include "report/tree/record_scan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tlparse {

Result<TextCache> TextCache::Open(Database& database) {
  TextCache cache;
  ASSIGN_OR_RETURN(cache.statement_, database.Prepare("SELECT text FROM text_row WHERE id = ?"));
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

Result<PayloadReader> PayloadReader::Open(Database& database, MemoryBudget* budget) {
  PayloadReader reader;
  reader.budget_ = budget;
  // Two statements: the content of a large payload is only touched where it is needed.
  ASSIGN_OR_RETURN(reader.head_,
                   database.Prepare("SELECT hash, size_bytes FROM payload_row WHERE id = ?"));
  ASSIGN_OR_RETURN(reader.content_,
                   database.Prepare("SELECT size_bytes, content FROM payload_row WHERE id = ?"));
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
  Release();
  RETURN_IF_ERROR(Seek(id, content_));
  if (budget_ != nullptr) lease_ = budget_->Take(content_.Int(0));
  return content_.Text(1);
}

void PayloadReader::Release() {
  content_.Reset();
  lease_.Release();
}

namespace {

// Where the participant's records lie, each process for itself if that keeps the log's order: a
// file of many ranks is then not read once per rank.
std::vector<RecordScan::Range> RangesOf(const Participant& participant) {
  std::vector<RecordScan::Range> ranges;
  const RecordScan::Range all{participant.first_record_id, participant.last_record_id, 0};
  if (participant.whole_log) return {all};
  for (const ReportProcess& process : participant.processes) {
    ranges.push_back({process.first_record_id, process.last_record_id, process.id});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first_id < b.first_id; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first_id <= ranges[i - 1].last_id) return {all};
  }
  return ranges;
}

std::string ProcessCondition(const Participant& participant, bool is_by_process) {
  if (participant.whole_log) return {};
  if (is_by_process) return " AND r.process_id = ?3";
  std::string condition = " AND r.process_id IN (";
  for (const ReportProcess& process : participant.processes) {
    condition += fmt::format("{},", process.id);
  }
  condition.back() = ')';
  return condition;
}

}  // namespace

Result<RecordScan> RecordScan::Open(Database& database, const Participant& participant,
                                    std::string_view columns, std::string_view joins,
                                    std::string_view condition) {
  RecordScan scan;
  scan.ranges_ = RangesOf(participant);
  const bool is_by_process = scan.ranges_.empty() || scan.ranges_.front().process_id != 0;
  ASSIGN_OR_RETURN(
      scan.row_,
      database.Prepare(fmt::format(
          "SELECT {} FROM record_row r {} WHERE r.id BETWEEN ?1 AND ?2{}{}{} ORDER BY r.id",
          columns, joins, ProcessCondition(participant, is_by_process),
          condition.empty() ? "" : " AND ", condition)));
  return scan;
}

Result<bool> RecordScan::Step() {
  while (true) {
    if (is_open_) {
      ASSIGN_OR_RETURN(const bool has_row, row_.Step());
      if (has_row) return true;
      is_open_ = false;
    }
    if (next_ == ranges_.size()) return false;
    const Range& range = ranges_[next_++];
    row_.Bind(1, range.first_id);
    row_.Bind(2, range.last_id);
    if (range.process_id != 0) row_.Bind(3, range.process_id);
    is_open_ = true;
  }
}

}  // namespace tlparse
