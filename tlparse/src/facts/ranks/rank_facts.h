// Facts by which ranks are classified besides cache, collectives and execution: graphs, generated
// codes, outcomes, graph breaks, times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/cache/cache.h"
#include "facts/ranks/ranks.h"
#include "store/hash128.h"

namespace tlparse {

// "/a/b.py:12 in f" → file and line of the aspect, if it is such a text.
void SetPlace(RankAspect& aspect, std::string_view source);

// Shorter timed events are never named as that in which a compile took longer than others: a push to
// a fleet leaves them out.
inline constexpr std::int64_t kLeastNamedEventUs = 100'000;

class RankFacts {
 public:
  // `job` and `graphs` must outlive the facts.
  static Result<RankFacts> Load(Database& database, const Job& job, const JobGraphs& graphs);

  // Equal for ranks with equal graphs, codes, outcomes and graph breaks in all slots.
  Hash128 Signature(RankIndex rank) const;
  // The differences between `rank` and `reference` in these.
  Result<std::vector<RankAspect>> Compare(Database& database, RankIndex reference,
                                          RankIndex rank) const;

  // The version that most ranks name; empty: none does.
  const std::string& common_torch() const { return common_torch_; }
  const std::string& common_python() const { return common_python_; }
  void SetCompileTime(RankClass& one) const;
  // Nothing if there are fewer than two participants or no times.
  Result<std::optional<SlowestRank>> FindSlowest(Database& database,
                                                 const CacheAnswer& cache) const;
  // Nothing if no compile of a rank took 10 s more than the others, and three times as long.
  Result<std::optional<StalledCompile>> FindStalled(Database& database,
                                                    const CacheAnswer& cache) const;

 private:
  RankFacts(const Job& job, const JobGraphs& graphs) : job_(&job), graphs_(&graphs) {}
  void FindCommonGraphs();
  void SetMedian(SlowestRank& slowest) const;
  void SetSlowRanks(SlowestRank& slowest) const;
  bool WentFirst(RankIndex rank, double lower_median_s) const;
  static bool IsSlow(double compile_s, double lower_median_s);
  Result<void> LoadCodes(Database& database);
  Result<void> LoadEvents(Database& database);
  bool OverlapsAnother(const std::vector<std::pair<double, std::int32_t>>& times,
                       std::int32_t index) const;
  std::string ReasonOfSlowness(const CacheAnswer& cache, RankIndex rank, std::int32_t slot) const;

  struct Code {
    std::int32_t graph_slot;
    std::int64_t content_id;
    std::int64_t record_id;
  };
  // A failure or graph break, by what it is and where.
  struct Event {
    std::int32_t slot;
    bool is_break;
    std::int64_t kind_id, type_id, line;
    std::int64_t reason_id;  // not compared: reasons hold addresses and ranks
    std::int64_t stack_id;   // of a break, not compared; 0: unknown
    bool operator==(const Event& other) const {
      return slot == other.slot && is_break == other.is_break && kind_id == other.kind_id &&
             type_id == other.type_id && line == other.line;
    }
  };
  Result<void> LoadBackends(Database& database);
  std::optional<RankAspect> CompareBackends(RankIndex reference, RankIndex rank) const;

  const Job* job_;
  const JobGraphs* graphs_;
  // By participant: 0 where the log has neither generated code nor a cache lookup.
  std::vector<char> has_inductor_;
  std::vector<std::vector<Code>> codes_;    // by participant, by graph slot
  std::vector<std::vector<Event>> events_;  // by participant, in log order
  std::vector<double> compile_s_;           // by participant: of the compiles whose time is known
  std::vector<char> lacks_time_;            // by participant: the time of one is not
  std::vector<std::int64_t> common_graph_;  // by slot: what most ranks have; 0: none
  std::string common_torch_, common_python_;
};

}  // namespace tlparse
