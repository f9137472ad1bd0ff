#include "facts/collectives/compile_spans.h"

#include <algorithm>
#include <map>

#include "queries/facts/collectives/compile_spans.h"

namespace tlparse {

namespace {

// A rank that compiles issues no call. One that issued several meanwhile compiled in another thread.
Result<void> TakeOutBesideCalls(Database& database, std::int64_t run_id,
                                std::vector<CompileSpan>& compiles) {
  constexpr std::ptrdiff_t kSeveral = 3;
  if (compiles.empty()) return {};
  std::map<std::int64_t, std::vector<std::int64_t>> calls_ns;  // by rank, ascending
  FOR_EACH_ROW(const CallOfRank& row, Query<CallOfRank>(database, {.run_id = run_id}))
    calls_ns[row.rank].push_back(row.start_ns);
  std::erase_if(compiles, [&](const CompileSpan& one) {
    const std::vector<std::int64_t>& own = calls_ns[one.rank];
    return std::lower_bound(own.begin(), own.end(), one.end_ns) -
               std::upper_bound(own.begin(), own.end(), one.start_ns) >=
           kSeveral;
  });
  return {};
}

}  // namespace

Result<std::vector<CompileSpan>> CompilesIn(Database& database, std::int64_t run_id,
                                            std::int64_t from_ns, std::int64_t to_ns) {
  std::vector<CompileSpan> compiles;
  FOR_EACH_ROW(const CompileInTime& row,
               Query<CompileInTime>(
                   database, {.run_id = run_id, .from_us = from_ns / 1000, .to_us = to_ns / 1000}))
    compiles.push_back({row.rank, row.start_us * 1000, row.end_us * 1000});
  RETURN_IF_ERROR(TakeOutBesideCalls(database, run_id, compiles));
  return compiles;
}

std::int64_t CompiledIn(const std::vector<CompileSpan>& compiles, std::optional<std::int64_t> rank,
                        std::int64_t from_ns, std::int64_t to_ns) {
  std::int64_t sum_ns = 0;
  for (const CompileSpan& one : compiles) {
    if (one.rank == rank)
      sum_ns +=
          std::max<std::int64_t>(0, std::min(one.end_ns, to_ns) - std::max(one.start_ns, from_ns));
  }
  return sum_ns;
}

std::int64_t CompiledByAny(const std::vector<CompileSpan>& compiles, std::int64_t to_ns) {
  std::int64_t any_ns = 0, end_ns = 0;
  std::map<std::int64_t, std::int64_t> of_rank;
  for (const CompileSpan& one : compiles) {
    const std::int64_t own_end_ns = std::min(one.end_ns, to_ns);
    any_ns += std::max<std::int64_t>(0, own_end_ns - std::max(end_ns, one.start_ns));
    end_ns = std::max(end_ns, own_end_ns);
    of_rank[one.rank] += own_end_ns - one.start_ns;
  }
  for (const auto& [rank, ns] : of_rank) any_ns = std::max(any_ns, ns);
  return any_ns;
}

}  // namespace tlparse
