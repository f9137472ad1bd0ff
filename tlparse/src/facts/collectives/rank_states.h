// When ranks wait for others, and when they do not, by their profiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "facts/collectives/compile_spans.h"
#include "facts/collectives/profiled_messages.h"
#include "facts/collectives/rank_work.h"

namespace tlparse {

using SpansByRank = std::map<std::int64_t, std::vector<TimeSpan>>;

struct RankTimes {
  TimeSpan common;
  std::int64_t compiled_ns = 0;
  SpansByRank calls;
  SpansByRank issued;  // the same, with what the rank does not wait for
  std::map<std::int64_t, std::vector<WorkSpan>> work;
  std::vector<CompileSpan> compiles;  // of logs: other findings tell of them
  bool is_of_devices = false;
  RunNames names;
  ProfiledTraffic traffic;
};

// Whether a rank waits in such calls, or works outside of them, from one moment to the next.
class RankStates {
 public:
  struct State {
    std::int64_t rank = 0;
    int calls = 0, work = 0, compiles = 0;
    bool IsWaiting() const { return calls > 0 && work == 0 && compiles == 0; }
    // Inside of a call that it does not wait for, too.
    bool IsElsewhere() const { return !IsWaiting() && compiles == 0; }
  };
  explicit RankStates(const RankTimes& of) : common_(of.common) {
    for (const auto& [rank, spans] : of.calls) {
      states_.push_back({.rank = rank});
      for (const TimeSpan& one : spans) Add(one, &State::calls);
      for (const WorkSpan& one : of.work.at(rank)) Add(one.time, &State::work);
      for (const CompileSpan& one : of.compiles) {
        if (one.rank == rank) Add({one.start_ns, one.end_ns}, &State::compiles);
      }
    }
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });
  }
  std::size_t size() const { return states_.size(); }
  // `change(before, now, index)` of each change of a state; then `pass(from_ns, to_ns)`.
  template <typename Change, typename Pass>
  void ForEach(const Change& change, const Pass& pass) const {
    std::vector<State> states = states_;
    for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
      const Edge& edge = edges_[i];
      State& state = states[edge.index];
      const State before = state;
      state.*edge.counter += edge.change;
      change(before, state, edge.index);
      const std::int64_t next_ns = edges_[i + 1].time_ns;
      if (next_ns > edge.time_ns) pass(edge.time_ns, next_ns);
    }
  }
  std::int64_t RankAt(std::size_t index) const { return states_[index].rank; }

 private:
  struct Edge {
    std::int64_t time_ns = 0;
    std::size_t index = 0;  // of states_
    int State::*counter = nullptr;
    int change = 0;
  };
  void Add(const TimeSpan& time, int State::*counter) {
    if (SharedNs(time, common_) == 0) return;
    const std::size_t index = states_.size() - 1;
    edges_.push_back({std::max(time.from_ns, common_.from_ns), index, counter, 1});
    edges_.push_back({std::min(time.to_ns, common_.to_ns), index, counter, -1});
  }
  TimeSpan common_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
};

// By rank: when it was not waiting in any such call while all others were. Those of `together` count
// as the first of them, and one of them that is outside is enough. Left out are times that end as
// one of the others leaves its call before the rank has issued any: its data came from elsewhere.
SpansByRank AwaitedTimes(const RankStates& states, const SpansByRank& issued,
                         const std::set<std::int64_t>& together);

// The same of the ranks of one group, with the collectives that all of them made together: Gloo's last until
// the last rank has come, and end on all ranks at once.
RankTimes TimesOfGroup(const RankTimes& of, const std::set<std::int64_t>& group);

// Two ranks or more, half of all at most, that were outside for longest while half of all waited: each of
// them for two thirds as long as the longest, and for three times as long as all others. Empty: there are none.
std::set<std::int64_t> SlowTogether(const RankStates& states);

}  // namespace tlparse
