#include "facts/collectives/compile_spans.h"

#include <algorithm>

#include "queries/facts/collectives/compile_spans.h"

namespace tlparse {

Result<std::vector<CompileSpan>> CompilesIn(Database& database, const IssuedJob& job,
                                            std::int64_t from_ns, std::int64_t to_ns) {
  std::vector<CompileSpan> compiles;
  FOR_EACH_ROW(const CompileInTime& row, Query<CompileInTime>(database, {.run_id = job.run_id,
                                                                         .from_us = from_ns / 1000,
                                                                         .to_us = to_ns / 1000}))
    compiles.push_back({row.rank, row.start_us * 1000, row.end_us * 1000});
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

}  // namespace tlparse
