#include "facts/diff/diff_runs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "facts/diff/profile_difference.h"
#include "facts/job/participants.h"
#include "facts/job/read_transaction.h"
#include "facts/ranks/ranks.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostComparisons = 16;

// The participants of a side, and the class of each.
struct Side {
  std::shared_ptr<const Job> job;
  std::vector<std::size_t> class_of;
};

Result<Side> LoadSide(const DiffSide& side) {
  RanksOptions options;
  options.run = side.run;
  options.launch = side.launch;
  ASSIGN_OR_RETURN(RanksAnswer ranks, AnalyzeRanks(*side.database, options));
  Side result;
  result.class_of.resize(ranks.job().participants().size());
  for (std::size_t i = 0; i < ranks.classes.size(); ++i) {
    for (const RankIndex rank : ranks.classes[i].ranks)
      result.class_of[static_cast<std::size_t>(rank)] = i;
  }
  result.job = std::make_shared<const Job>(std::move(ranks.cache.job));
  return result;
}

using Pairs = std::vector<std::pair<RankIndex, RankIndex>>;

Pairs PairRanks(const Job& a, const Job& b) {
  Pairs pairs;
  const auto count = [](const Job& job) {
    return static_cast<RankIndex>(job.participants().size());
  };
  if (count(a) == 1 || count(b) == 1) {
    for (RankIndex i = 0; i < std::max(count(a), count(b)); ++i)
      pairs.emplace_back(count(a) == 1 ? 0 : i, count(b) == 1 ? 0 : i);
    return pairs;
  }
  std::map<std::string, RankIndex> by_name;
  for (RankIndex i = 0; i < count(b); ++i)
    by_name.emplace(b.participants()[static_cast<std::size_t>(i)].name, i);
  for (RankIndex i = 0; i < count(a); ++i) {
    const auto other = by_name.find(a.participants()[static_cast<std::size_t>(i)].name);
    if (other != by_name.end()) pairs.emplace_back(i, other->second);
  }
  // Logs without ranks have other names in each run: they are paired by their order.
  for (RankIndex i = 0; pairs.empty() && i < std::min(count(a), count(b)); ++i)
    pairs.emplace_back(i, i);
  return pairs;
}

// The ranks of one side of the pairs, each once.
std::vector<RankIndex> RanksOf(const Pairs& pairs, bool is_a) {
  std::vector<RankIndex> ranks;
  for (const auto& [a, b] : pairs) ranks.push_back(is_a ? a : b);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string RanksWithoutPartner(const Job& job, const std::vector<RankIndex>& paired) {
  std::vector<RankIndex> rest;
  for (RankIndex i = 0; i < static_cast<RankIndex>(job.participants().size()); ++i) {
    if (!std::binary_search(paired.begin(), paired.end(), i)) rest.push_back(i);
  }
  return job.FormatRanks(rest);
}

Result<std::optional<DigestDifference>> CompareDigestsOf(const DiffSide& a, const Job& a_job,
                                                         const DiffSide& b, const Job& b_job,
                                                         const Pairs& pairs) {
  ASSIGN_OR_RETURN(const bool has_a, HasDigests(*a.database));
  ASSIGN_OR_RETURN(const bool has_b, HasDigests(*b.database));
  if (!has_a || !has_b) return std::optional<DigestDifference>();
  return CompareDigests({a.database, &a_job}, {b.database, &b_job}, pairs);
}

// Of the two ranks that were compared.
Result<std::optional<DigestDifference>> CompareDigestsOfRanks(const DiffSide& a, const DiffSide& b,
                                                              const DiffAnswer& diff) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Job> a_job, JobOf(a));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Job> b_job, JobOf(b));
  const auto find = [](const Job& job, const std::string& name) {
    RankIndex rank = 0;
    while (job.participants()[static_cast<std::size_t>(rank)].name != name) ++rank;
    return rank;
  };
  Pairs pairs;
  pairs.emplace_back(find(*a_job, diff.a_rank), find(*b_job, diff.b_rank));
  return CompareDigestsOf(a, *a_job, b, *b_job, pairs);
}

// Nothing: a side names no rank.
std::optional<std::int64_t> RankOf(const DiffSide& side) {
  if (!side.rank) return std::nullopt;
  std::int64_t rank = 0;
  const char* const end = side.rank->data() + side.rank->size();
  const bool is_number = std::from_chars(side.rank->data(), end, rank).ptr == end;
  return is_number ? std::optional(rank) : std::nullopt;
}

// A recording of memory is of a rank of a run: nothing says of which launch.
Result<std::optional<MemoryDifference>> CompareMemoryOf(const DiffSide& a, const DiffSide& b) {
  const bool has_unknown_rank = (a.rank && !RankOf(a)) || (b.rank && !RankOf(b));
  if (has_unknown_rank || a.launch || b.launch) return std::optional<MemoryDifference>();
  ASSIGN_OR_RETURN(const std::int64_t a_run, FindRun(*a.database, a.run));
  ASSIGN_OR_RETURN(const std::int64_t b_run, FindRun(*b.database, b.run));
  return CompareMemory({a.database, a_run, RankOf(a)}, {b.database, b_run, RankOf(b)});
}

Result<std::optional<VllmStartPair>> CompareStarts(const DiffSide& a, const DiffSide& b) {
  std::vector<VllmStart> starts[2];
  if (a.rank || b.rank || a.launch || b.launch) return std::optional<VllmStartPair>();
  for (const bool is_b : {false, true}) {
    const DiffSide& side = is_b ? b : a;
    ASSIGN_OR_RETURN(const std::int64_t run, FindRun(*side.database, side.run));
    ASSIGN_OR_RETURN(starts[is_b ? 1 : 0], LoadVllmStarts(*side.database, run));
  }
  if (starts[0].empty() || starts[1].empty()) return std::optional<VllmStartPair>();
  return std::optional(VllmStartPair{std::move(starts[0].back()), std::move(starts[1].back())});
}

// Nothing: both sides have logs.
Result<std::optional<RunComparison>> CompareWithoutLogs(const DiffSide& a, const DiffSide& b) {
  DiffAnswer diff;
  MeasuredSide sides[2];
  for (const bool is_b : {false, true}) {
    const DiffSide& side = is_b ? b : a;
    MeasuredSide& measured = sides[is_b ? 1 : 0];
    measured.database = side.database;
    ASSIGN_OR_RETURN(measured.run_id, FindRun(*side.database, side.run));
    ASSIGN_OR_RETURN(const std::vector<RunParticipant> participants,
                     LoadParticipants(*side.database, measured.run_id));
    (is_b ? diff.b_has_log : diff.a_has_log) = !participants.empty();
    ASSIGN_OR_RETURN(const std::string name, NameOfRun(*side.database, measured.run_id));
    (is_b ? diff.b_title : diff.a_title) = "run " + name;
  }
  if (diff.HasLogs()) return std::optional<RunComparison>();
  for (const bool is_b : {false, true}) {
    const DiffSide& side = is_b ? b : a;
    if (!side.rank) continue;
    const std::optional<std::int64_t> rank = RankOf(side);
    if (!rank)
      return Fail(ErrorCode::kNotFound,
                  (is_b ? diff.b_title : diff.a_title) + " has no rank '" + *side.rank + "'");
    sides[is_b ? 1 : 0].rank = rank;
    (is_b ? diff.b_rank : diff.a_rank) = *side.rank;
    (is_b ? diff.b_title : diff.a_title) += ", rank " + *side.rank;
  }
  RunComparison result;
  ASSIGN_OR_RETURN(result.memory, CompareMemoryOf(a, b));
  ASSIGN_OR_RETURN(result.starts, CompareStarts(a, b));
  Result<MeasuredDifference> measured = CompareProfiles(sides[0], sides[1]);
  // Snapshots of memory and texts of vLLM are no profiles.
  if (measured) diff.measured = *std::move(measured);
  if (!measured &&
      (measured.error().code != ErrorCode::kNotFound || (!result.memory && !result.starts)))
    return tl::unexpected<Error>(std::move(measured).error());
  RankComparison& one = result.comparisons.emplace_back();
  one.count = 1;
  one.a_ranks = diff.a_rank;
  one.b_ranks = diff.b_rank;
  one.diff = std::move(diff);
  return std::optional(std::move(result));
}

}  // namespace

bool RunComparison::IsEqual() const {
  if (digests && !digests->changes.empty()) return false;
  return only_a_ranks.empty() && only_b_ranks.empty() && left_out == 0 &&
         std::all_of(comparisons.begin(), comparisons.end(),
                     [](const RankComparison& one) { return one.diff.IsEqual(); });
}

Result<RunComparison> AnalyzeRunDiff(const DiffSide& a, const DiffSide& b,
                                     const DiffOptions& options) {
  ASSIGN_OR_RETURN(std::optional<RunComparison> of_profiles, CompareWithoutLogs(a, b));
  if (of_profiles) return *std::move(of_profiles);
  RunComparison result;
  ASSIGN_OR_RETURN(result.memory, CompareMemoryOf(a, b));
  ASSIGN_OR_RETURN(result.starts, CompareStarts(a, b));
  if (a.rank || b.rank) {
    DiffSide a_one = a, b_one = b;
    ASSIGN_OR_RETURN(a_one.job, JobOf(a));
    // Two ranks of one launch have one job.
    if (a.database == b.database && a.run == b.run && a.launch == b.launch) b_one.job = a_one.job;
    ASSIGN_OR_RETURN(b_one.job, JobOf(b_one));
    RankComparison one;
    ASSIGN_OR_RETURN(one.diff, AnalyzeDiff(a_one, b_one, options));
    one.count = 1;
    one.a_ranks = one.diff.a_rank;
    one.b_ranks = one.diff.b_rank;
    ASSIGN_OR_RETURN(result.digests, CompareDigestsOfRanks(a_one, b_one, one.diff));
    result.comparisons.push_back(std::move(one));
    return result;
  }
  ASSIGN_OR_RETURN(const ReadTransaction a_transaction, ReadTransaction::Begin(*a.database));
  ASSIGN_OR_RETURN(const ReadTransaction b_transaction, ReadTransaction::Begin(*b.database));
  ASSIGN_OR_RETURN(const Side a_side, LoadSide(a));
  ASSIGN_OR_RETURN(const Side b_side, LoadSide(b));
  const Pairs pairs = PairRanks(*a_side.job, *b_side.job);
  result.only_a_ranks = RanksWithoutPartner(*a_side.job, RanksOf(pairs, true));
  result.only_b_ranks = RanksWithoutPartner(*b_side.job, RanksOf(pairs, false));
  ASSIGN_OR_RETURN(result.digests, CompareDigestsOf(a, *a_side.job, b, *b_side.job, pairs));
  std::map<std::pair<std::size_t, std::size_t>, Pairs> alike;
  for (const auto& pair : pairs) {
    alike[{a_side.class_of[static_cast<std::size_t>(pair.first)],
           b_side.class_of[static_cast<std::size_t>(pair.second)]}]
        .push_back(pair);
  }
  std::vector<const Pairs*> order;
  for (const auto& [classes, members] : alike) order.push_back(&members);
  std::stable_sort(order.begin(), order.end(),
                   [](const Pairs* x, const Pairs* y) { return x->size() > y->size(); });
  for (const Pairs* members : order) {
    if (result.comparisons.size() == kMostComparisons) {
      ++result.left_out;
      continue;
    }
    const auto name = [](const Job& job, RankIndex rank) {
      return job.participants()[static_cast<std::size_t>(rank)].name;
    };
    DiffSide a_one = a, b_one = b;
    a_one.rank = name(*a_side.job, members->front().first);
    b_one.rank = name(*b_side.job, members->front().second);
    a_one.job = a_side.job;
    b_one.job = b_side.job;
    RankComparison one;
    ASSIGN_OR_RETURN(one.diff, AnalyzeDiff(a_one, b_one, options));
    one.count = members->size();
    one.a_ranks = a_side.job->FormatRanks(RanksOf(*members, true));
    one.b_ranks = b_side.job->FormatRanks(RanksOf(*members, false));
    result.comparisons.push_back(std::move(one));
  }
  return result;
}

}  // namespace tlparse
