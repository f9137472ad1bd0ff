// The participants of a run: ranks, or logs without rank, by launch. All answers and reports get
// them from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct ParticipantProcess {
  std::int64_t id = 0;
  std::int64_t pid = 0;
  std::optional<std::int64_t> time_shift_us;  // local_us + this = microseconds since the epoch
  std::int64_t first_record_id = 0;           // its records lie between these two
  std::int64_t last_record_id = 0;
  std::string torch_version;  // empty: the log does not say
  std::string python_version;
  std::optional<std::int64_t> first_record_us;  // nothing: uncalibrated
  std::string child_kind;  // "loader_worker", …: of which kind of child; empty: it is none
  std::optional<std::int64_t> parent_process_id;  // of a child, where it is known
};

// One log, or one rank of a log that holds several.
struct RunParticipant {
  std::optional<std::int64_t> rank;
  std::int64_t launch = 1;  // ordinal
  // 1: the only log of its rank in this launch, or the first; 2, …: logs that overlap it.
  int log_number = 1;
  // Where a rank has several logs in this launch: the script that the process ran; else empty.
  std::string script;
  // Another script than most ranks of the launch ran, or the same one, which most ranks ran twice;
  // and not the first log of its rank.
  bool is_of_other_job = false;
  bool is_of_second_job = false;  // of the same script
  bool is_job_clear = true;       // which of a rank's two logs is of which job is known
  // The path of the log of the same process that this one is a copy of; empty: it is none.
  std::string copy_of;
  bool is_whole_copy = false;  // the same bytes; else it ends earlier
  // All its processes are children of a rank (process.child_kind). It may have its parent's rank. Of
  // a launch that has nothing else none is a child.
  bool is_child = false;
  // Unique within a launch: "3", "3#2" (a further log of rank 3), "log:<stem>".
  std::string name;
  // Of the log: its file's name without the usual endings. PyTorch ends the names of logs without a
  // rank in random characters: such logs in folders of their own are called by these, others by
  // script and process: "train.py-pid4242".
  std::string stem;
  bool rank_in_records = false;  // the rank was read from records, not from the file's name
  std::string log_path;
  std::string content_hash;          // of the whole file
  std::int64_t first_record_id = 0;  // inclusive; 0 and -1: no records
  std::int64_t last_record_id = -1;
  bool whole_log = true;  // else only records of `processes`
  std::vector<ParticipantProcess> processes;

  const ParticipantProcess* Process(std::int64_t id) const;
};

// The participants of a run, by launch, then by rank (without rank last), then by file; of the logs of a
// rank those that ran the script of most ranks first, copies last; those of children after all others of
// the launch. A file with at most one rank is one participant, forked children without a rank included.
Result<std::vector<RunParticipant>> LoadParticipants(Database& database, std::int64_t run_id);

struct Launch {
  std::int64_t id = 0;
  std::int64_t ordinal = 0;
  std::optional<std::int64_t> start_us, end_us;  // nothing: uncalibrated
  std::int64_t process_count = 0;
};
// Ascending. Empty: no log of the run has a record.
Result<std::vector<Launch>> LoadLaunches(Database& database, std::int64_t run_id);
// The given ordinal, or the latest. kNotFound with the list of launches.
Result<std::int64_t> FindLaunch(Database& database, std::int64_t run_id,
                                const std::optional<std::int64_t>& ordinal);

// The named run, or the latest that is no experiment. kNotFound with the list of names.
Result<std::int64_t> FindRun(Database& database, std::string_view run_name);
Result<std::string> NameOfRun(Database& database, std::int64_t run_id);
// Whether the database has the table `experiment`.
Result<bool> HasExperiments(Database& database);

// One launch of a run.
struct ChosenLaunch {
  std::int64_t run_id = 0;
  std::string run_name;
  std::int64_t ordinal = 1;
  std::int64_t count = 1;  // launches of the run, at least 1
};
// As FindRun and FindLaunch.
Result<ChosenLaunch> ChooseLaunch(Database& database, std::string_view run_name,
                                  const std::optional<std::int64_t>& ordinal);

// "a/trace.log.gz" → "trace": names lose their usual endings; "-" is "stdin".
std::string LogStem(std::string_view path);

// "0-3,6": runs of consecutive numbers; `ranks` ascending.
std::string FormatRankRanges(const std::vector<std::int64_t>& ranks);
// "rank 3", "ranks 0-3,6".
std::string RanksText(const std::vector<std::int64_t>& ranks);
// The same at the beginning of a sentence.
std::string RanksFirst(const std::vector<std::int64_t>& ranks);

}  // namespace tlparse
