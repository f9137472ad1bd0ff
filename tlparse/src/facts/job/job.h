// The ranks of one run: who took part, what each compiled, and which compiles of different ranks
// correspond. Everything that compares ranks uses this.
//
// Ranks are compared by *slot*. A slot is one compile of the job: compiles of different ranks are
// in one slot if their labels, functions and Dynamo graphs agree, else by function and the values of
// arguments (ranks may get them in another order), else by function and graph (labels shift where a
// rank compiled more or less), else by label and function, function, or label alone. A function is
// known by its name, file and line; lines may be of two texts of a file, unless a rank compiled both.
// Ranks with equal compile sequences are aligned once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifacts/common/compile_status.h"
#include "base/result.h"
#include "facts/job/participants.h"
#include "store/database.h"
#include "store/query.h"

namespace tlparse {

// Index of a participant in Job::participants; small and dense.
using RankIndex = std::int32_t;

// A participant: a rank, or one log of a job without ranks.
struct JobParticipant {
  std::optional<std::int64_t> rank;
  std::string name;           // "3", "3#2" (a further log of rank 3), "log:<stem>"
  bool is_extra_log = false;  // not the first log of its rank in this launch
  std::string script;         // known where a rank has several logs
  bool is_of_other_job =
      false;  // another script, or one that most ranks ran twice; not the first log
  bool is_of_second_job = false;  // of the same script
  bool is_job_clear = true;       // as in RunParticipant
  std::string log_path;
  std::int64_t first_record_id = 0;  // of its log, inclusive; 0 and -1: no records
  std::int64_t last_record_id = -1;
  std::vector<std::int64_t> process_ids;
  std::string torch_version;  // empty: not in the log
  std::string python_version;
};

// A log of processes that a rank started: it is no participant, and is compared with none.
struct ChildLog {
  std::optional<std::int64_t> rank;  // that it inherited
  std::string name;                  // "1#2"
  std::string kind;                  // of its first process: "loader_worker", …
  std::optional<std::int64_t> parent_process_id;
};

// A log that is a copy of another one, whole or in part: it is no participant.
struct CopiedLog {
  std::optional<std::int64_t> rank;
  std::string path, original;
  bool is_whole = false;
};

struct JobCompile {
  std::int64_t id = 0;
  RankIndex participant = 0;
  std::int32_t slot = -1;
  std::int32_t label_id = -1;     // Job::string, its name: "1/0", "1/0#2", "unknown_16"
  std::int32_t key_id = -1;       // by which it is matched with those of other ranks
  std::int32_t function_id = -1;  // -1: unknown
  std::int32_t file_id = -1;
  CompileStatus status = CompileStatus::kOk;
  std::int64_t line = 0;           // 0: unknown
  std::int64_t stack_id = 0;       // of the call that began it; 0: unknown
  std::int64_t graph_content = 0;  // content id of dynamo_output_graph; 0: none
  std::int32_t variant_id = -1;  // "L['kind'] == 'image'": the values of arguments by which a rank
                                 // compiled the function again, and whether gradients were needed
                                 // where it did both; -1: none, or unknown
  std::int64_t start_us = 0;     // 0: unknown
  std::int64_t duration_us = 0;  // 0: unknown
  std::int64_t backward_duration_us = 0;
  std::int32_t generation = 0;
  bool is_synthetic = false;

  // Of the compile and its backward; nothing: the log does not have the time of the compile itself.
  std::optional<double> Seconds() const {
    if (duration_us == 0) return std::nullopt;
    return static_cast<double>(duration_us + backward_duration_us) / 1e6;
  }
  // Whether the log should have the time of it, and does not.
  bool LacksTime() const { return slot >= 0 && !is_synthetic && duration_us == 0; }
};

struct JobSlot {
  std::string label;     // of the reference rank, or of the first that has it: Job::SlotOf
  std::string function;  // empty: unknown
  std::string file;
  std::int64_t line = 0;
  std::string Title() const;  // "1/0 forward"
};

// The records of a job's logs, and those that lie between them.
struct JobRecords {
  std::int64_t first_id = INT64_MAX, last_id = -1;
  std::vector<std::int64_t> cut;  // those of them whose payload is cut off, ascending

  void Take(const JobParticipant& one);
  // "e.record_id BETWEEN 5 AND 90" for column "e.record_id". A query that has it reads no other run
  // of the database.
  std::string InLogs(std::string_view column) const;
  // The same, without records whose payload is cut off: what the rest would be is not known.
  std::string InWholeRecords(std::string_view column) const;
};

class Job {
 public:
  // Loads one launch of a run; the latest run of the database if `run_name` is empty, its latest
  // launch if none is named. kNotFound: no such run or launch, or nothing in it.
  static Result<Job> Load(Database& database, std::string_view run_name = {},
                          const std::optional<std::int64_t>& launch = {});
  // Nothing but these participants, ascending, as if the others had no log.
  Job Part(const std::vector<RankIndex>& members) const;

  // A run of profiles and dumps alone: a job without participants. kNotFound: no such run, or it has
  // logs, or nothing at all.
  static Result<Job> LoadWithoutLogs(Database& database, std::string_view run_name = {});

  const ChosenLaunch& chosen() const { return launch_; }
  std::int64_t run_id() const { return launch_.run_id; }
  const std::string& run_name() const { return launch_.run_name; }
  std::int64_t launch() const { return launch_.ordinal; }
  std::int64_t launch_count() const { return launch_.count; }  // of the run
  // "run X, launch 2 of 3"; of a run with one launch "run X".
  std::string Title() const;
  // Whether it is a part of a job.
  bool is_part() const { return is_part_; }
  // Of all launches of the run, with copies and children.
  const std::vector<RunParticipant>& all_logs() const { return *all_logs_; }
  // Those whose log has records (all, if no log has any), is no copy, and not of a child.
  const std::vector<JobParticipant>& participants() const { return participants_; }
  // Ranks of this launch whose log has no record, ascending.
  const std::vector<std::int64_t>& ranks_without_records() const { return ranks_without_records_; }
  // In the order of the ranks.
  const std::vector<CopiedLog>& copied_logs() const { return copied_logs_; }
  const std::vector<ChildLog>& children() const { return children_; }
  const std::vector<JobCompile>& compiles() const { return compiles_; }
  const std::vector<JobSlot>& slots() const { return slots_; }
  // Slots in the order of the reference rank; others at their place in the order of their rank.
  const std::vector<std::int32_t>& slot_order() const { return slot_order_; }
  // Position of a slot in slot_order().
  std::int32_t SlotPosition(std::int32_t slot) const {
    return slot_position_[static_cast<std::size_t>(slot)];
  }
  // Participants whose compile sequences are equal, largest class first (ties: lowest rank).
  const std::vector<std::vector<RankIndex>>& sequence_classes() const { return sequence_classes_; }

  // Index into compiles() of a participant's compile in a slot; -1: it has none.
  std::int32_t CompileOf(RankIndex participant, std::int32_t slot) const {
    return compile_of_[static_cast<std::size_t>(participant)][static_cast<std::size_t>(slot)];
  }
  // The slot as these participants name it: a label or place that they do not share is left out, and
  // each of their functions is named. As in slots(), if none of them has the compile.
  JobSlot SlotOf(std::int32_t slot, const std::vector<RankIndex>& who) const;
  // By name, file and line.
  bool IsOfFunction(const JobCompile& compile, const JobSlot& slot) const;
  // Of a function that a rank compiled both with and without gradients, without them.
  bool IsWithoutGradients(const JobCompile& compile) const;
  // Whether functions of one name begin in other lines, or in files of other names.
  bool HaveOtherPlaces(const JobCompile& a, const JobCompile& b) const;
  std::string InLogs(std::string_view column) const { return records_.InLogs(column); }
  std::string InWholeRecords(std::string_view column) const {
    return records_.InWholeRecords(column);
  }
  bool HasCutRecords() const { return !records_.cut.empty(); }
  // Whether a record of these has its whole payload.
  bool IsWhole(std::int64_t record_id) const;
  // The same for ids of compiles.
  std::string InCompiles(std::string_view column) const;
  // The rows of a query about the records of the whole job, which `make` makes: they are read once
  // for the job and all its parts. They have no texts.
  template <class Row, class Make>
  Result<const std::vector<Row>*> RowsOfWhole(Make make) const {
    std::shared_ptr<void>& known = whole_->rows[std::type_index(typeid(Row))];
    if (known == nullptr) {
      auto rows = std::make_shared<std::vector<Row>>();
      FOR_EACH_ROW(const Row& row, make(std::as_const(whole_->records))) rows->push_back(row);
      known = std::move(rows);
    }
    return static_cast<const std::vector<Row>*>(known.get());
  }
  // What `make` finds of this job, or of this part of one: it is found once.
  template <class Found, class Make>
  Result<const Found*> FoundOnce(Make make) const {
    std::shared_ptr<void>& known = (*found_)[std::type_index(typeid(Found))];
    if (known == nullptr) {
      ASSIGN_OR_RETURN(Found found, make());
      known = std::make_shared<Found>(std::move(found));
    }
    return static_cast<const Found*>(known.get());
  }
  // By database id; nullptr: of another run.
  const JobCompile* FindCompile(std::int64_t compile_id) const;
  // Position of the compile that a participant's log ends with, if that did not come to a good end;
  // INT32_MAX: the log ends after a good one. Later compiles have no place in such a log.
  std::int32_t EndPosition(RankIndex participant) const {
    return end_position_[static_cast<std::size_t>(participant)];
  }
  // -1: of another run.
  RankIndex ParticipantOfProcess(std::int64_t process_id) const;
  const std::string& string(std::int32_t id) const {
    return strings_[static_cast<std::size_t>(id)];
  }

  // "0-3,6" for participants with ranks, names for others; in order, joined by commas.
  std::string FormatRanks(const std::vector<RankIndex>& participants) const;
  // The same after "rank" or "ranks", if one of them has a rank: "rank 2", "ranks 0-3,6".
  std::string NameRanks(const std::vector<RankIndex>& participants) const;
  // Participants without those of another job.
  std::size_t CountOfJob() const {
    return static_cast<std::size_t>(
        std::count_if(participants_.begin(), participants_.end(),
                      [](const JobParticipant& one) { return !one.is_of_other_job; }));
  }
  // Whether there are several participants: a single one has none to differ from.
  bool HasSeveral() const { return participants_.size() > 1; }

 private:
  std::int32_t Intern(std::string_view text);
  Result<void> TakeParticipants(Database& database);
  Result<void> LoadCutRecords(Database& database);
  Result<void> LoadCompiles(Database& database);
  void AddCompile(const JobCompile& compile);
  // Index into compiles(); -1: of another run.
  std::int32_t IndexOfCompile(std::int64_t compile_id) const;
  Result<void> LoadGraphs(Database& database);
  Result<void> LoadVariants(Database& database);
  void Align();
  void FindSequenceClasses();
  bool AreTwoFunctions(const JobCompile& a, const JobCompile& b) const;
  bool HasCompiledBoth(const JobCompile& a, const JobCompile& b) const;
  bool AreApart(const JobCompile& a, const JobCompile& b, bool is_of_any_value) const;
  void AlignAll();
  std::vector<std::int32_t> MatchSlots(const std::vector<std::int32_t>& compiles) const;
  void AlignClass(const std::vector<RankIndex>& members);
  void FindEndPositions();

  ChosenLaunch launch_;
  using ByType = std::unordered_map<std::type_index, std::shared_ptr<void>>;
  struct Whole {
    JobRecords records;
    ByType rows;  // vectors
  };

  JobRecords records_;
  std::shared_ptr<Whole> whole_ = std::make_shared<Whole>();  // of the whole job
  std::shared_ptr<ByType> found_ = std::make_shared<ByType>();
  std::shared_ptr<const std::vector<RunParticipant>> all_logs_ =
      std::make_shared<const std::vector<RunParticipant>>();
  std::vector<JobParticipant> participants_;
  std::vector<std::int64_t> ranks_without_records_;
  std::vector<CopiedLog> copied_logs_;
  std::vector<ChildLog> children_;
  bool is_part_ = false;
  std::vector<JobCompile> compiles_;
  std::vector<std::vector<std::int32_t>> compiles_of_participant_;
  std::vector<JobSlot> slots_;
  std::vector<JobCompile> slot_keys_;  // an example of each slot's compiles
  std::vector<std::int32_t> slot_order_;
  std::vector<std::int32_t> slot_position_;
  std::vector<std::vector<RankIndex>> sequence_classes_;
  std::vector<std::vector<std::int32_t>> compile_of_;
  std::vector<std::int32_t> end_position_;
  std::unordered_map<std::int64_t, RankIndex> participant_of_process_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, std::int32_t> string_ids_;
};

}  // namespace tlparse
