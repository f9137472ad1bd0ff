#include "facts/diff/digest_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "queries/facts/diff/digest_difference.h"

namespace tlparse {
namespace {

constexpr std::array<std::string_view, 3> kKinds = {"kernel", "choice", "output"};

struct Part {
  std::string hash, value;
};
// By kind (index into kKinds) and name.
using Parts = std::map<std::pair<std::size_t, std::string>, Part>;

// One run of a graph. Equal compile ids come twice where the compiler was reset.
struct CallKey {
  std::string label, graph;
  std::optional<std::int64_t> call;
  std::int64_t repetition = 0;
  auto Tie() const { return std::tie(label, graph, call, repetition); }
  bool operator<(const CallKey& other) const { return Tie() < other.Tie(); }
};
struct Call {
  std::string function;
  Parts parts;
};
using Calls = std::map<CallKey, Call>;

Result<std::vector<Calls>> LoadCalls(const DigestSide& side) {
  std::vector<Calls> calls(side.job->participants().size());
  std::int64_t last_record_id = 0;
  Call* call = nullptr;
  FOR_EACH_ROW(const DigestOfCall& row,
               Query<DigestOfCall>(*side.database, {.in_logs = side.job->InLogs("d.record_id")})) {
    const RankIndex rank = side.job->ParticipantOfProcess(row.process_id);
    if (rank < 0) continue;  // of another run or launch
    if (call == nullptr || row.record_id != last_record_id) {
      CallKey key{std::string(row.label), std::string(row.graph), row.call};
      Calls& of_rank = calls[static_cast<std::size_t>(rank)];
      while (of_rank.find(key) != of_rank.end()) ++key.repetition;
      call = &of_rank[key];
      call->function = row.function;
      last_record_id = row.record_id;
    }
    const auto kind = std::find(kKinds.begin(), kKinds.end(), row.kind);
    if (kind == kKinds.end()) continue;
    call->parts[{static_cast<std::size_t>(kind - kKinds.begin()), std::string(row.name)}] = {
        std::string(row.hash), std::string(row.value)};
  }
  return calls;
}

// Changes of one part over all calls and ranks.
struct DigestSum {
  DigestChange change;
  std::vector<RankIndex> ranks;
};
using SumKey = std::tuple<std::string, std::string, std::size_t, std::string>;

class DigestComparer {
 public:
  void Compare(RankIndex rank, const CallKey& key, const Call& a, const Call& b) {
    ++result_.call_count;
    for (const auto& [place, part] : a.parts) {
      const auto other = b.parts.find(place);
      Add(rank, key, b.function, place, &part, other == b.parts.end() ? nullptr : &other->second);
    }
    for (const auto& [place, part] : b.parts) {
      if (a.parts.find(place) == a.parts.end()) Add(rank, key, b.function, place, nullptr, &part);
    }
  }
  void CountUnpaired(const Calls& calls, const Calls& others, std::int64_t& count) {
    for (const auto& [key, call] : calls) {
      if (others.find(key) == others.end()) ++count;
    }
  }
  DigestDifference Finish(const Job& job) {
    for (auto& [key, sum] : sums_) {
      if (sum.change.call_count == 0) continue;
      sum.change.ranks = job.FormatRanks(sum.ranks);
      result_.changes.push_back(std::move(sum.change));
    }
    return std::move(result_);
  }
  DigestDifference& result() { return result_; }

 private:
  void Add(RankIndex rank, const CallKey& key, const std::string& function,
           const Parts::key_type& place, const Part* a, const Part* b) {
    const auto& [kind, name] = place;
    ++(kind == 0 ? result_.kernel_count : kind == 1 ? result_.choice_count : result_.output_count);
    DigestSum& sum = sums_[{key.label, key.graph, kind, name}];
    DigestChange& change = sum.change;
    ++change.compared_count;
    if (a != nullptr && b != nullptr && a->hash == b->hash) return;
    if (sum.ranks.empty() || sum.ranks.back() != rank) sum.ranks.push_back(rank);
    if (change.call_count++ > 0) return;
    change.kind = kKinds[kind];
    change.label = key.label;
    change.function = function;
    change.graph = key.graph;
    change.name = name;
    change.first_call = key.call;
    change.is_only_a = b == nullptr;
    change.is_only_b = a == nullptr;
    if (a != nullptr) change.a_value = a->value;
    if (b != nullptr) change.b_value = b->value;
  }

  DigestDifference result_;
  std::map<SumKey, DigestSum> sums_;
};

}  // namespace

Result<bool> HasDigests(Database& database) {
  ASSIGN_OR_RETURN(const std::int64_t has_table,
                   database.QueryInt("SELECT count(*) FROM sqlite_schema "
                                     "WHERE type = 'table' AND name = 'run_digest'"));
  if (has_table == 0) return false;  // an earlier tlparse's
  ASSIGN_OR_RETURN(const std::int64_t has_row,
                   database.QueryInt("SELECT EXISTS (SELECT 1 FROM run_digest)"));
  return has_row != 0;
}

Result<std::optional<DigestDifference>> CompareDigests(
    const DigestSide& a, const DigestSide& b,
    const std::vector<std::pair<RankIndex, RankIndex>>& pairs) {
  ASSIGN_OR_RETURN(const std::vector<Calls> a_calls, LoadCalls(a));
  ASSIGN_OR_RETURN(const std::vector<Calls> b_calls, LoadCalls(b));
  DigestComparer comparison;
  bool has_a = false, has_b = false;
  for (const auto& [a_rank, b_rank] : pairs) {
    const Calls& old_ones = a_calls[static_cast<std::size_t>(a_rank)];
    const Calls& new_ones = b_calls[static_cast<std::size_t>(b_rank)];
    has_a |= !old_ones.empty();
    has_b |= !new_ones.empty();
    for (const auto& [key, call] : old_ones) {
      const auto other = new_ones.find(key);
      if (other != new_ones.end()) comparison.Compare(a_rank, key, call, other->second);
    }
    comparison.CountUnpaired(old_ones, new_ones, comparison.result().only_a_call_count);
    comparison.CountUnpaired(new_ones, old_ones, comparison.result().only_b_call_count);
  }
  if (!has_a || !has_b) return std::optional<DigestDifference>();
  return std::optional(comparison.Finish(*a.job));
}

}  // namespace tlparse
