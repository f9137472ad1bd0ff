// Which logs a Follower follows: new ones, those that the run has already, and those that got
// another name.
#include "queries/import/follower_add.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file_hash.h"
#include "import/follower.h"
#include "import/replace.h"

namespace tlparse {

Result<bool> Follower::IsIngested(const FoundLog& log) {
  std::string known_hash;
  {
    ASSIGN_OR_RETURN(const FirstRow<HashOfLog> known,
                     First(Query<HashOfLog>(database_, {.run_id = run_id_, .path = log.path})));
    if (!known) return false;
    known_hash = known->content_hash;
  }
  ASSIGN_OR_RETURN(const std::string hash, HashFile(log.bytes_path()));
  if (hash == known_hash) return true;
  RETURN_IF_ERROR(BeginTransaction());
  has_orphans_ = true;
  RETURN_IF_ERROR(RemoveLogRows(database_, run_id_, log.path));
  return false;
}

Result<void> Follower::Add(const FoundLog& log) {
  const auto known = by_path_.find(log.path);
  if (known != by_path_.end()) {
    // It was removed, and there is a file of that name again.
    return known->second->is_ended() && log.path != "-" ? Restart(*known->second) : Result<void>();
  }
  ASSIGN_OR_RETURN(const bool is_renamed, TakeOverRenamed(log));
  if (is_renamed) return {};
  RETURN_IF_ERROR(RemoveEarlierNames(log));
  auto growing = std::make_unique<GrowingLog>(log, has_stepped_);
  ASSIGN_OR_RETURN(const bool is_ingested, IsIngested(log));
  if (is_ingested) growing->SetIngested();
  by_path_.emplace(log.path, growing.get());
  logs_.push_back(std::move(growing));
  return {};
}

// Whether a log that was removed was compressed or copied before, as logrotate does it.
Result<bool> Follower::IsKeptElsewhere(const GrowingLog& log) {
  const std::int64_t bytes = log.reader().bytes_read();
  for (const std::unique_ptr<GrowingLog>& one : logs_) {
    const FoundLog& other = one->found();
    if (one.get() == &log || one->is_ended() || bytes == 0 || !other.file.empty() ||
        !other.path.starts_with(log.found().path))
      continue;
    const Result<std::string> hash = HashFile(other.path, bytes);
    if (hash && *hash == log.reader().ContentHash()) return true;
  }
  return false;
}

// The same for logs that the run has and that were removed before `log` was found.
Result<void> Follower::RemoveEarlierNames(const FoundLog& log) {
  if (!log.file.empty()) return {};
  const std::size_t name = log.path.rfind('/') + 1;
  for (std::size_t end = log.path.find_last_of(".-"); end != std::string::npos && end > name;
       end = log.path.find_last_of(".-", end - 1)) {
    const std::string earlier = log.path.substr(0, end);
    std::int64_t bytes = 0;
    std::string content_hash;
    {
      ASSIGN_OR_RETURN(
          const FirstRow<FinishedLog> known,
          First(KeptQuery<FinishedLog>(database_, {.run_id = run_id_, .path = earlier})));
      if (!known) continue;
      bytes = known->size_bytes;
      content_hash = known->content_hash;
    }
    if (bytes == 0 || access(earlier.c_str(), F_OK) == 0) continue;
    const Result<std::string> hash = HashFile(log.path, bytes);
    if (!hash || *hash != content_hash) continue;
    RETURN_IF_ERROR(BeginTransaction());
    has_orphans_ = true;
    RETURN_IF_ERROR(RemoveLogRows(database_, run_id_, earlier));
    if (const auto followed = by_path_.find(earlier); followed != by_path_.end())
      followed->second->has_rows = false;
  }
  return {};
}

namespace {

// Whether each process of the log has a rank by its records, whatever the name of the file says.
bool HasRanks(const LogState& log) {
  const auto& processes = log.processes.processes();
  return std::all_of(processes.begin(), processes.end(),
                     [](const auto& process) { return process->state.rank.has_value(); });
}

}  // namespace

// A log that was rotated keeps its rows under its new name. If the names give other ranks, it is
// read again.
Result<bool> Follower::TakeOverRenamed(const FoundLog& log) {
  const auto renamed = std::find_if(logs_.begin(), logs_.end(), [&](const auto& one) {
    return !one->is_ended() && one->IsNow(log) &&
           (one->found().rank == log.rank || HasRanks(*one->state));
  });
  if (renamed == logs_.end()) return false;
  GrowingLog& known = **renamed;
  RETURN_IF_ERROR(BeginTransaction());
  has_orphans_ = true;
  RETURN_IF_ERROR(RemoveLogRows(database_, run_id_, log.path));  // of one that was removed
  ASSIGN_OR_RETURN(
      Statement* const rename,
      database_.PrepareKept("UPDATE log_file SET path = ?, name_rank = ? WHERE id = ?"));
  FileInfo& file = known.state->file;
  file.path = log.path;
  file.name_rank = log.rank;
  rename->Bind(1, std::string_view(file.path));
  rename->Bind(2, file.name_rank);
  rename->Bind(3, known.state->id);
  RETURN_IF_ERROR(rename->Run());
  by_path_.erase(known.found().path);
  by_path_.emplace(log.path, &known);
  known.Rename(log);
  return true;
}

}  // namespace tlparse
