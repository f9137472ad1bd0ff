// Questions over all runs of a fleet. The servers compute rows; causes are named as for one run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/check/check.h"
#include "base/result.h"
#include "fleet/clickhouse_client.h"

namespace tlparse {

struct FleetColumnOfAnswer {
  enum class Kind { kText, kInt, kReal, kBool };  // kBool: 0 or 1
  std::string name;
  Kind kind = Kind::kText;
};
// Rows as the server wrote them: text or digits; nullopt: NULL.
struct FleetSection {
  std::string name;  // key in JSON, heading for people
  std::vector<FleetColumnOfAnswer> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;
};
struct FleetAnswer {
  std::vector<FleetSection> sections;
  std::vector<std::string> notes;  // sentences about the result and about unknowns
};

struct FleetQuestion {
  std::string job;             // empty: all
  std::string run_id;          // of one run; empty: the latest of the job
  std::string function;        // of `time`
  std::string kernel;          // of `kernel`
  std::int64_t since_day = 0;  // days since 1970: runs of that day and later
  std::int64_t limit = 20;
  // Of `findings`, which pulls runs.
  std::vector<ClickHouseOptions> servers;
  std::function<void(std::size_t done, std::size_t count)> on_progress;  // may be empty
};

// Of the compiles of a process: their time with that of their backwards, and, for HAVING, whether
// the log has the times of all.
inline constexpr std::string_view kProcessCompileUs =
    "sum(if(isNull(duration_us), 0, assumeNotNull(duration_us) + ifNull(backward_duration_us, 0)))";
inline constexpr std::string_view kHasAllTimes =
    "countIf(isNull(duration_us) AND isNotNull(frame_id) AND is_synthetic = 0) = 0";

// A connection for questions to one server, or to the shards behind its "<table>_all".
class FleetReader {
 public:
  // kUsage: several servers that are not shards of one cluster.
  static Result<FleetReader> Make(const std::vector<ClickHouseOptions>& servers);

  // The name of a table, for FROM.
  std::string From(std::string_view table) const;
  // "job … AND day … AND load_id IN (live loads)" of the question, or of one run.
  std::string Live(const FleetQuestion& question) const;
  std::string LiveRun(const std::string& run_id) const;
  // Runs a query with the columns of the section.
  Result<FleetSection> Read(std::string name, std::vector<FleetColumnOfAnswer> columns,
                            const std::string& sql);
  // The same, as the next section of the answer.
  Result<void> ReadInto(FleetAnswer& answer, std::string name,
                        std::vector<FleetColumnOfAnswer> columns, const std::string& sql);
  Result<std::vector<std::vector<std::string>>> Rows(const std::string& sql, std::size_t columns);

 private:
  FleetReader(ClickHouseClient client, bool has_shards)
      : client_(std::move(client)), has_shards_(has_shards) {}
  ClickHouseClient client_;
  bool has_shards_;
};

// Runs, the latest first.
Result<FleetAnswer> FleetJobs(FleetReader& reader, const FleetQuestion& question);
// With a function: its compile time in each run, where it changed, and what else changed there.
// Without: the functions that took longest.
Result<FleetAnswer> FleetTime(FleetReader& reader, const FleetQuestion& question);
// Lookups by job, day and layer; components that change most often.
Result<FleetAnswer> FleetCache(FleetReader& reader, const FleetQuestion& question);
// One run: lookups, collectives and compiles that differ between ranks; the slowest ranks.
Result<FleetAnswer> FleetRanks(FleetReader& reader, const FleetQuestion& question);
// Graph breaks and recompiles by cost.
Result<FleetAnswer> FleetBreaks(FleetReader& reader, const FleetQuestion& question);
Result<FleetAnswer> FleetRecompiles(FleetReader& reader, const FleetQuestion& question);
// Generated code that differs between versions of torch.
Result<FleetAnswer> FleetCode(FleetReader& reader, const FleetQuestion& question);
// Where a kernel was compiled, and from which lines.
Result<FleetAnswer> FleetKernel(FleetReader& reader, const FleetQuestion& question);

// Findings of all runs; those that only the latest run of a job has are marked as new. A run
// without stored findings of its last load is pulled into a temporary database, where its findings
// are derived as for any database; table `finding` keeps them for the next question.
Result<FleetAnswer> FleetFindings(FleetReader& reader, const FleetQuestion& question);

// The largest counts that a process has in any run of the question.
struct FleetCounts {
  std::int64_t run_count = 0;
  CheckCounts counts;
};
// Leaves out the loads of the run with this run.uuid ("": none): the run that is compared may have
// been pushed already.
Result<FleetCounts> FleetWorstCounts(FleetReader& reader, const FleetQuestion& question,
                                     const std::string& without_source);

}  // namespace tlparse
