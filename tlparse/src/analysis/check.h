// Budgets for CI: is a run within them? The answer of `tlparse check`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A limit that is not set is not checked. Counts are per participant (rank or log): the worst one
// counts, so that a budget says the same for 8 ranks and for 10,000.
struct CheckBudget {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
  // Compiles that a recompile reason was logged for; those that the limit refused count.
  std::optional<std::int64_t> max_recompiles;
  std::optional<std::int64_t> max_graph_breaks;
  std::optional<std::int64_t> max_cache_misses;  // of all layers; guard misses count
  std::optional<double> min_cache_hit_rate;      // hits / (hits + misses) over all participants and
                                                 // layers, 0 … 1; no lookups: 0 / 0 passes
  std::optional<double> max_compile_seconds;     // of all compiles and backwards of a participant
  bool no_failures = false;                      // findings compile_failed, stopped_first
  bool no_divergence = false;         // findings *_divergence, extra_compile, missing_compile,
                                      // one_key_two_codes above a note
  bool notes_are_divergence = false;  // with no_divergence: expected differences count as well
  std::vector<std::string> known_findings;  // ids that are accepted
};

struct CheckRule {
  std::string name;  // max-recompiles, …
  bool is_ok = true;
  std::string limit;  // as text
  std::string actual;
  std::vector<std::string> rows;  // what offends: at most 50
  std::size_t left_out = 0;
};

struct CheckAnswer {
  std::string run;
  std::vector<CheckRule> rules;
  bool IsOk() const;
};
// One rule per limit that is set. kNotFound: no such run.
Result<CheckAnswer> RunCheck(Database& database, const CheckBudget& budget);

// Counts of the participant that has most.
struct CheckCounts {
  std::int64_t recompiles = 0;
  std::int64_t graph_breaks = 0;
  std::int64_t cache_misses = 0;
  std::int64_t failures = 0;
};
Result<CheckCounts> CountForCheck(Database& database, const std::string& run);

// What counts are of: a participant may hold several processes (forked children), which a fleet
// counts one by one.
enum class CountedBy : std::uint8_t { kParticipant, kProcess };

// The rules of `tlparse check --against`, for the run and launch of the budget: no more recompiles,
// graph breaks, cache misses and failures than these, which were counted in the same way.
Result<std::vector<CheckRule>> CheckAgainst(Database& database, const CheckBudget& budget,
                                            const CheckCounts& limits, CountedBy by);

}  // namespace tlparse
