// Checks a run against budgets for CI. The answer of `tlparse check`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A limit that is not set is not checked. Counts are per participant (rank or log), and the highest
// is compared, so that a budget means the same for 8 ranks and for 10,000.
struct CheckBudget {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
  // Compiles with a logged recompile reason, including those that PyTorch's limit refused.
  std::optional<std::int64_t> max_recompiles;
  std::optional<std::int64_t> max_graph_breaks;
  std::optional<std::int64_t> max_cache_misses;  // of all layers; guard misses count
  std::optional<double> min_cache_hit_rate;      // hits / (hits + misses) over all participants and
                                                 // layers, 0 … 1; no lookups: 0 / 0 passes
  std::optional<double> max_compile_seconds;     // of all compiles and backwards of a participant,
                                                 // as far as the log has their times
  bool no_failures = false;                      // findings compile_failed, crashed, stopped_first
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
  std::vector<std::string> rows;  // those that violate the rule: at most 50
  std::size_t left_out = 0;
};

struct CheckAnswer {
  std::string run;
  std::vector<CheckRule> rules;
  bool IsOk() const;
  // Whether no limit is exceeded by what was read, but an input was not read, or not whole.
  bool CannotTell() const;
};
// One rule per limit that is set, and one that is broken if an input was not read, or not whole: what
// the others count is that of the rest. kNotFound: no such run.
Result<CheckAnswer> RunCheck(Database& database, const CheckBudget& budget);

// Counts of the participant with the highest counts.
struct CheckCounts {
  std::int64_t recompiles = 0;
  std::int64_t graph_breaks = 0;
  std::int64_t cache_misses = 0;
  std::int64_t failures = 0;
};
Result<CheckCounts> CountForCheck(Database& database, const std::string& run);

// The unit of counting: a participant may have several processes (forked children), which a fleet
// counts separately.
enum class CountedBy : std::uint8_t { kParticipant, kProcess };

// The rules of `tlparse check --against`, for the run and launch of the budget: no more recompiles,
// graph breaks, cache misses and failures than these, which were counted in the same way.
Result<std::vector<CheckRule>> CheckAgainst(Database& database, const CheckBudget& budget,
                                            const CheckCounts& limits, CountedBy by);

}  // namespace tlparse
