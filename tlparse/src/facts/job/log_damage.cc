#include "facts/job/log_damage.h"

#include <algorithm>

namespace tlparse {

Result<LogDamage> FindLogDamage(Database& database, const Job& job) {
  LogDamage damage;
  damage.is_damaged.resize(job.participants().size());
  damage.is_cut.resize(job.participants().size());
  damage.readable_bytes.resize(job.participants().size());
  // As the view log_damage, which databases of earlier versions lack. The few rows that report
  // damage first: a log may hold thousands of processes and rows.
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "WITH damage AS MATERIALIZED ("
          "SELECT CASE WHEN i.code <> 'stray_record' THEN i.record_id END AS record_id, "
          "i.log_file_id, i.code IN ('payload_truncated', 'damaged_input') "
          "OR (i.code = 'broken_header' AND i.line + i.line_count > f.line_count) AS is_cut, "
          "CASE WHEN i.code = 'damaged_input' THEN coalesce(i.byte_offset, 0) END AS end_offset "
          "FROM import_log i JOIN log_file f ON f.id = i.log_file_id WHERE i.run_id = ? "
          "AND i.code IN ('broken_header', 'payload_mismatch', 'payload_missing', "
          "'payload_truncated', 'payload_without_record', 'unhashed_payload', 'bad_payload_hash', "
          "'damaged_input', 'line_too_long', 'damaged_header', 'stray_record', 'missing_metrics')) "
          "SELECT r.process_id, d.is_cut, d.end_offset "
          "FROM damage d JOIN record_row r ON r.id = d.record_id "
          "UNION SELECT p.id, d.is_cut, d.end_offset "
          "FROM damage d JOIN process p ON p.log_file_id = d.log_file_id "
          "WHERE d.record_id IS NULL"));
  rows.Bind(1, job.run_id());
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return damage;
    const RankIndex participant = job.ParticipantOfProcess(rows.Int(0));
    if (participant < 0) continue;
    const auto index = static_cast<std::size_t>(participant);
    (rows.Int(1) != 0 ? damage.is_cut : damage.is_damaged)[index] = 1;
    if (rows.IsNull(2)) continue;
    damage.is_damaged[index] = 1;
    damage.readable_bytes[index] = rows.Int(2);
  }
}

bool LogDamage::AreDamaged(const std::vector<RankIndex>& who) const {
  return !who.empty() && std::all_of(who.begin(), who.end(), [&](RankIndex one) {
    return is_damaged[static_cast<std::size_t>(one)] != 0;
  });
}

bool LogDamage::EndEarly(const Job& job, const std::vector<RankIndex>& who) const {
  return std::all_of(who.begin(), who.end(), [&](RankIndex one) { return EndsEarly(job, one); });
}

bool LogDamage::Shows(const Job& job, RankIndex who, std::int32_t slot) const {
  const std::int32_t compile = job.CompileOf(who, slot);
  if (compile >= 0)
    return job.compiles()[static_cast<std::size_t>(compile)].status != CompileStatus::kUnfinished;
  std::int32_t end = job.EndPosition(who);
  if (end == INT32_MAX && is_cut[static_cast<std::size_t>(who)] != 0) {
    end = -1;
    for (const std::int32_t other : job.slot_order()) {
      if (job.CompileOf(who, other) >= 0) end = job.SlotPosition(other);
    }
  }
  return job.SlotPosition(slot) < end;
}

bool LogDamage::AnyIsIncomplete(const std::vector<RankIndex>& who) const {
  return std::any_of(who.begin(), who.end(), [&](RankIndex one) {
    const auto index = static_cast<std::size_t>(one);
    return is_damaged[index] != 0 || is_cut[index] != 0;
  });
}

}  // namespace tlparse
