#include "report/tree/record_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "queries/report/tree/record_scan.h"

namespace tlparse {

Result<TextCache> TextCache::Open(Database& database) {
  TextCache cache;
  cache.database_ = &database;
  return cache;
}

Result<std::string_view> TextCache::Get(std::int64_t id) {
  if (id == 0) return std::string_view();
  const auto known = texts_.find(id);
  if (known != texts_.end()) return std::string_view(known->second);
  ASSIGN_OR_RETURN(const FirstRow<TextOfId> row,
                   First(KeptQuery<TextOfId>(*database_, {.id = id})));
  const auto added = texts_.emplace(id, row ? std::string(row->text) : std::string());
  return std::string_view(added.first->second);
}

Result<PayloadReader> PayloadReader::Open(Database& database, MemoryBudget* budget) {
  PayloadReader reader;
  reader.budget_ = budget;
  // Two statements: the content of a large payload is only touched where it is needed.
  reader.head_ = AnyRows::Of(database, "SELECT hash, size_bytes FROM payload_row WHERE id = ?");
  reader.content_ =
      AnyRows::Of(database, "SELECT size_bytes, content FROM payload_row WHERE id = ?");
  for (AnyRows* rows : {&reader.head_, &reader.content_})
    if (const std::unique_ptr<Error> error = rows->TakeError())
      return tl::unexpected<Error>(std::move(*error));
  return reader;
}

Result<const AnyRow*> PayloadReader::Seek(std::int64_t id, AnyRows& rows) {
  rows.statement().Reset();
  rows.statement().Bind(1, id);
  if (rows.Next()) return &rows.row();
  if (const std::unique_ptr<Error> error = rows.TakeError())
    return tl::unexpected<Error>(std::move(*error));
  return Fail(ErrorCode::kDatabase, fmt::format("the database lacks payload {}", id));
}

Result<std::string> PayloadReader::Hash(std::int64_t id) {
  ASSIGN_OR_RETURN(const AnyRow* row, Seek(id, head_));
  return std::string(row->Text("hash"));
}

Result<std::int64_t> PayloadReader::SizeBytes(std::int64_t id) {
  ASSIGN_OR_RETURN(const AnyRow* row, Seek(id, head_));
  return row->Int("size_bytes");
}

Result<std::string_view> PayloadReader::Content(std::int64_t id) {
  Release();
  ASSIGN_OR_RETURN(const AnyRow* row, Seek(id, content_));
  if (budget_ != nullptr) lease_ = budget_->Take(row->Int("size_bytes"));
  return row->Text("content");
}

void PayloadReader::Release() {
  content_.statement().Reset();
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
  scan.rows_ = AnyRows::Of(
      database,
      fmt::format("SELECT {} FROM record_row r {} WHERE r.id BETWEEN ?1 AND ?2{}{}{} ORDER BY r.id",
                  columns, joins, ProcessCondition(participant, is_by_process),
                  condition.empty() ? "" : " AND ", condition));
  if (const std::unique_ptr<Error> error = scan.rows_.TakeError())
    return tl::unexpected<Error>(std::move(*error));
  return scan;
}

bool RecordScan::Next() {
  while (true) {
    if (is_open_) {
      if (rows_.Next()) return true;
      if (rows_.has_error()) return false;
      is_open_ = false;
    }
    if (next_ == ranges_.size()) return false;
    const Range& range = ranges_[next_++];
    Statement& statement = rows_.statement();
    statement.Bind(1, range.first_id);
    statement.Bind(2, range.last_id);
    if (range.process_id != 0) statement.Bind(3, range.process_id);
    is_open_ = true;
  }
}

}  // namespace tlparse
