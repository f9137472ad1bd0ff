// One screen for a job: which ranks compiled the same thing, what sets the others apart, which was
// slowest and why, which are missing. The answer of `tlparse ranks`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/cache/cache.h"
#include "facts/cache/cause.h"
#include "facts/collectives/collectives.h"
#include "facts/execution/execution.h"
#include "facts/job/log_damage.h"

namespace tlparse {

// An option or setting that two ranks have with other values.
struct RankOption {
  std::string name;                   // "inductor_config[max_fusion_size]", "default_dtype"
  std::string change;                 // "64 → 13"
  std::optional<std::string> before;  // the whole first value; nothing: the log does not have it
};

// In what a class differs.
enum class AspectArea : std::uint8_t {
  kBuild,
  kOptions,
  kCompiles,
  kGraphs,
  kCache,
  kCode,
  kCollectives,
  kExecution,
  kTensors,
  kFailures,
  kGraphBreaks
};
// In the text and in JSON, in the order of the enumeration.
inline constexpr std::string_view kAspectAreas[] = {
    "build",       "options",   "compiles", "graphs",   "cache",       "code",
    "collectives", "execution", "tensors",  "failures", "graph_breaks"};
constexpr std::string_view Name(AspectArea area) {
  return kAspectAreas[static_cast<std::size_t>(area)];
}

// One thing that sets a class apart from the reference.
struct RankAspect {
  AspectArea area = AspectArea::kBuild;
  std::string text;
  std::vector<std::int32_t> slots = {};  // compiles where it shows
  std::optional<CauseKind> cause = {};   // of a cache finding
  bool is_on_others = false;             // the others have it, this class does not
  bool is_state = false;  // follows from a compile that failed or did not finish on one side
  // graph_breaks: the whole reason; execution: a remark; compiles of another function: both names;
  // compiles that some lack: Cause::recompiled; collectives that one side lacks: their graph
  std::string reason = {};
  std::string stack = {};  // graph_breaks: the user's frames
  std::string file = {};   // where in the user's code; empty: unknown
  std::int64_t line = 0;
  bool is_order = false;    // collectives: the same ones in another order
  bool is_absence = false;  // says only what a log does not have
  // Most of the ranks whose logs go that far are as the reference.
  bool has_majority = false;
  std::string group = {};           // cache: the ranks that differ so, as a text
  bool is_of_other_states = false;  // cache: one side hits where the other does not
  bool is_of_numbers = false;       // graphs: the nodes that differ have other numbers only
  bool is_of_parameters = false;    // graphs: one side takes parameters that the other does not
  bool is_of_sizes = false;         // cache, graphs, code: inputs differ in numbers alone
  bool is_of_first_stage = false;   // cache: Cause::is_of_first_stage
  std::vector<RankOption> options = {};  // of another configuration: all of them
  bool is_of_lines = false;              // graphs: equal but for files and lines of the user's code
  std::string change =
      {};  // graphs of a record: the text without saying that it is the Dynamo graph
};

// Ranks that compiled the same thing: the same compiles, graphs, generated codes, collectives,
// execution order, failures, and cache keys, up to expected differences.
struct RankClass {
  std::vector<RankIndex> ranks;
  std::string role = {};            // set by AnalyzeRoles
  std::vector<RankAspect> aspects;  // empty for the reference
  // Compile time of a rank, its compiles and their backwards; 0: unknown. Of the ranks whose logs
  // have the times of all compiles; where none has, of what they have.
  double median_compile_s = 0;
  bool is_at_least = false;
  bool is_damaged = false;  // all its logs are: what sets it apart may be the damage
  bool is_cut = false;      // the last record of each of its logs is cut off or damaged
};

struct SlowestRank {
  RankIndex rank = 0;
  double compile_s = 0;
  bool is_at_least = false;         // its log lacks the time of a compile
  double median_s = 0;              // of all ranks whose logs lack none
  double lower_median_s = 0;        // the lower of two in the middle: no more than half are above
  bool is_of_complete = false;      // not all are such
  bool is_median_at_least = false;  // none is: of what the logs have
  std::string compile;              // the compile that adds most; empty: none adds anything
  std::int32_t slot = -1;           // its slot
  double compile_excess_s = 0;
  std::string reason;  // why that compile takes longer, if the trace shows it
  // One event is all that it takes longer, in which others spend next to nothing: no matter of what
  // the rank compiles.
  bool is_of_one_event = false;
  // Its compiles of 0.1 s and more against the medians of the ranks: how many, and how many times as
  // long.
  std::size_t compared_count = 0;
  double least_times = 0, most_times = 0;
  // The ranks that took half as long again as the lower median, and 2 s more, or longer; the others
  // are those whose logs lack no time. Empty: none.
  std::vector<RankIndex> slow;
  double slow_least_s = 0;
  std::size_t others_count = 0;
  double others_least_s = 0, others_most_s = 0;
  // Such ranks that had finished what made them slow before any other began it: as where rank 0 compiles first, to
  // fill the caches. They are not in `slow`, unless no other rank is.
  std::vector<RankIndex> went_first;
  bool AreFirst() const { return !went_first.empty() && slow == went_first; }
  // Whether that compile makes up half of the difference or more.
  bool IsMostInOne() const {
    return !compile.empty() && 2 * compile_excess_s >= compile_s - lower_median_s;
  }
};

// A compile that one rank took much longer for than the others, though not for all of its compiles.
struct StalledCompile {
  RankIndex rank = 0;
  std::int32_t slot = 0;
  double own_s = 0;
  std::size_t others_count = 0;
  double others_least_s = 0, others_most_s = 0;
  std::string reason;  // empty: the trace does not show it
};

struct RanksAnswer {
  CacheAnswer cache;               // holds the job and its graphs
  CollectiveAnswer collectives;    // without job and graphs: they are in `cache`
  ExecutionAnswer execution;       // the same
  std::vector<RankClass> classes;  // the reference first
  // Most ranks are as the reference, as far as their logs go.
  bool has_majority = true;
  std::optional<SlowestRank> slowest;     // of several ranks
  std::optional<StalledCompile> stalled;  // the one with the largest excess
  std::vector<std::int64_t> missing_ranks;
  std::int64_t world_size = 0;  // as given, else the least number that the inputs show; 0: no ranks
  std::string world_size_source;      // a sentence; empty: the highest rank with a log is the last
  std::vector<RankIndex> extra_logs;  // further logs of a rank
  std::vector<RankIndex> without_compiles;
  LogDamage damage;
  std::vector<std::string> notes;  // expected differences, or the state of a store

  const Job& job() const { return cache.job; }
  // A difference to a class whose logs are damaged is none.
  bool HasDivergence() const;
};

struct RanksOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
  std::optional<std::int64_t> world_size = {};
  bool with_op_differences = true;
};
Result<RanksAnswer> AnalyzeRanks(Database& database, const RanksOptions& options);
// The answers that it is made of, as AnalyzeCache and the others give them.
Result<CacheAnswer> TakeCache(Database& database, const CacheOptions& options, RanksAnswer ranks);
Result<CollectiveAnswer> TakeCollectives(Database& database, const CollectiveOptions& options,
                                         RanksAnswer ranks);
Result<ExecutionAnswer> TakeExecution(Database& database, const ExecutionOptions& options,
                                      RanksAnswer ranks);
// Of a part of the job of `whole`.
Result<RanksAnswer> AnalyzeRanksPart(Database& database, const RanksAnswer& whole,
                                     const std::vector<RankIndex>& members);
// The same of each role of a job that has several, with the ranks that have none; empty: it has one.
Result<std::vector<RanksAnswer>> AnalyzeRoles(Database& database, const RanksAnswer& whole);
// Finds the classes of the answer, which has all that they are made of.
Result<void> ClassifyRanks(Database& database, RanksAnswer& answer);

}  // namespace tlparse
