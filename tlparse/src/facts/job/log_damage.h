// Which logs of a job are damaged, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

struct LogDamage {
  // By participant. Records of its log were lost or changed before its end: what sets it apart from
  // the others may be due to that.
  std::vector<char> is_damaged;
  // By participant: the last record of its log is cut off or damaged, or its data end early.
  std::vector<char> is_cut;
  // By participant: the compressed file is cut or damaged, and can be read up to this byte of the
  // text. What its process did later is not known; is_damaged and is_cut are set too.
  std::vector<std::optional<std::int64_t>> readable_bytes;

  // Whether the logs of all of them are damaged.
  bool AreDamaged(const std::vector<RankIndex>& who) const;
  // Whether a difference between the two may be due to damage.
  bool MayExplain(const std::vector<RankIndex>& who, const std::vector<RankIndex>& others) const {
    return AreDamaged(who) || AreDamaged(others);
  }
  // Whether a log of theirs is damaged or cut: what it lacks the process may have done.
  bool AnyIsIncomplete(const std::vector<RankIndex>& who) const;
  // Whether a log ends with a compile that did not come to a good end, or is cut.
  bool EndsEarly(const Job& job, RankIndex who) const {
    return job.EndPosition(who) != INT32_MAX || is_cut[static_cast<std::size_t>(who)] != 0;
  }
  bool EndEarly(const Job& job, const std::vector<RankIndex>& who) const;  // all of them
  // Whether a log shows what came of a compile of the job: it has the end of it, or later ones
  // without it.
  bool Shows(const Job& job, RankIndex who, std::int32_t slot) const;
  // Of a part of the job.
  LogDamage Part(const std::vector<RankIndex>& members) const;
};
Result<LogDamage> FindLogDamage(Database& database, const Job& job);

}  // namespace tlparse
