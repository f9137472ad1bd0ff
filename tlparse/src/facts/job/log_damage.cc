#include "facts/job/log_damage.h"

#include <algorithm>

#include "queries/facts/job/log_damage.h"

namespace tlparse {

Result<LogDamage> FindLogDamage(Database& database, const Job& job) {
  LogDamage damage;
  damage.is_damaged.resize(job.participants().size());
  damage.is_cut.resize(job.participants().size());
  damage.readable_bytes.resize(job.participants().size());
  FOR_EACH_ROW(const DamageOfProcess& row,
               KeptQuery<DamageOfProcess>(database, {.run_id = job.run_id()})) {
    const RankIndex participant = job.ParticipantOfProcess(row.process_id);
    if (participant < 0) continue;
    const auto index = static_cast<std::size_t>(participant);
    if (row.is_damaged) damage.is_damaged[index] = 1;
    if (row.is_cut) damage.is_cut[index] = 1;
    if (row.readable_bytes) damage.readable_bytes[index] = row.readable_bytes;
  }
  return damage;
}

LogDamage LogDamage::Part(const std::vector<RankIndex>& members) const {
  LogDamage part;
  for (const RankIndex member : members) {
    const auto index = static_cast<std::size_t>(member);
    part.is_damaged.push_back(is_damaged[index]);
    part.is_cut.push_back(is_cut[index]);
    part.readable_bytes.push_back(readable_bytes[index]);
  }
  return part;
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
