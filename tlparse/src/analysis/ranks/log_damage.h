// Which logs of a job are damaged, and how.
#pragma once

#include <vector>

#include "analysis/ranks/job.h"
#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct LogDamage {
  // By participant. Records of its log were lost or changed before its end: what sets it apart from
  // the others may be due to that.
  std::vector<char> is_damaged;
  // By participant: the last record of its log is cut off or damaged.
  std::vector<char> is_cut;

  // Whether the logs of all of them are damaged.
  bool AreDamaged(const std::vector<RankIndex>& who) const;
};
Result<LogDamage> FindLogDamage(Database& database, const Job& job);

}  // namespace tlparse
