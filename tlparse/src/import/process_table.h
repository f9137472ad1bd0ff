// The processes of one log file, their clocks, and the compile each record belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifacts/artifact.h"
#include "artifacts/common/process_state.h"
#include "log/glog_time.h"
#include "log/import_code.h"
#include "log/record_reader.h"

namespace tlparse {

// Converts the prefix times of a process to times since the epoch. The year is guessed from the
// file's time until an event gives it.
class ProcessClock {
 public:
  ProcessClock(PrefixTimeUs first, std::int64_t file_mtime_us, bool has_mtime);

  // The time of a record in microseconds on the process's own scale, which shift_us() converts to the epoch. Never less than that
  // of the record before, except where that one was ahead of its neighbours (damage).
  std::int64_t LocalUs(PrefixTimeUs time);
  // A sentence about the time of the record before, where the latest call showed it to be wrong; else empty.
  std::string_view contradiction() const { return contradiction_; }
  // What the first and the latest call of LocalUs returned.
  std::int64_t first_local_us() const { return first_us_; }
  std::int64_t last_local_us() const { return last_us_; }
  void Note(PrefixTimeUs time, std::int64_t epoch_us, IngestContext::TimeBasis basis);
  // Add to LocalUs; nothing if uncalibrated.
  std::optional<std::int64_t> shift_us() const;
  std::optional<std::int64_t> utc_offset_s() const;
  std::string_view basis() const;

 private:
  Calibration provisional_;
  bool has_mtime_;
  std::optional<Calibration> event_;
  std::int64_t event_shift_us_ = 0;
  std::optional<Calibration> coarse_;  // by a cache lookup or metrics
  std::int64_t coarse_shift_us_ = 0;
  std::string_view coarse_basis_;
  std::int64_t zone_change_us_ = 0;  // the clock was moved (daylight saving) since the first event
  std::int64_t pending_quarters_ = 0;  // the change that the latest event shows
  std::int64_t first_us_ = INT64_MIN;
  std::int64_t last_us_ = INT64_MIN;
  std::int64_t last_us_before_ = INT64_MIN;  // last_us_ as of the record before
  // The times of the latest two records, as their prefixes have them.
  std::int64_t raw_us_ = INT64_MIN;
  std::int64_t raw_us_before_ = INT64_MIN;
  std::string_view contradiction_;
};

struct Process {
  ProcessState state;
  ProcessClock clock;
  std::int64_t first_record_id = 0;
  std::int64_t last_record_id = 0;
  ImportPlace latest_place = {};      // of its latest record
  ImportPlace previous_place = {};    // of the record before
  CompileState* synthetic = nullptr;  // open stretch of records without ids
  CompileState* ended = nullptr;      // the stretch that metrics ended last
  CompileState* latest = nullptr;     // of the latest record with ids
  // As of the latest pause (TypingStep::PauseFile).
  std::int64_t paused_record_id = 0;
  std::optional<std::int64_t> paused_rank = {};
};

class ProcessTable {
 public:
  // `next_process_id` and `next_compile_id` are counters of the load.
  ProcessTable(std::int64_t& next_process_id, std::int64_t& next_compile_id,
               std::int64_t file_mtime_us, bool has_mtime)
      : next_process_id_(next_process_id),
        next_compile_id_(next_compile_id),
        mtime_us_(file_mtime_us),
        has_mtime_(has_mtime) {}

  // The process that wrote the record. Sets *rank_conflict if the record's rank creates a second
  // process for its pid.
  Process& For(const LogRecord& record, std::int64_t record_id, bool* rank_conflict);
  // The compile the record belongs to, created if necessary; nullptr: none. Updates what follows
  // from the envelope alone.
  CompileState* CompileFor(Process& process, const LogRecord& record, std::int64_t record_id);
  // A record without ids ended the open synthetic compile.
  static void EndSynthetic(Process& process) {
    process.ended = std::exchange(process.synthetic, nullptr);
  }

  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

 private:
  Process& Find(const LogRecord& record, bool* rank_conflict);
  Process& Make(const LogRecord& record, std::int64_t pid);
  CompileState& MakeCompile(Process& process, const CompileIds& ids, std::string label,
                            std::int64_t record_id);

  std::int64_t& next_process_id_;
  std::int64_t& next_compile_id_;
  std::int64_t mtime_us_;
  bool has_mtime_;
  std::vector<std::unique_ptr<Process>> processes_;
  Process* current_ = nullptr;  // wrote the latest record
  // by pid: the process that records without rank belong to
  std::unordered_map<std::int64_t, Process*> latest_;
  // by pid and rank, of pids with several ranks
  std::map<std::pair<std::int64_t, std::int64_t>, Process*> by_rank_;
};

}  // namespace tlparse
