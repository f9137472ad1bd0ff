// Which rank schedules its collectives differently, where, and how. The answer of `tlparse
// collectives`.
//
// The collectives of a rank are those of its graphs in the order of the job's compiles, from the
// generated code (logged on a cache hit as well, with sizes, dtypes and groups), else
// from the scheduler's list (names only).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/collectives/collective_list.h"
#include "facts/collectives/issued.h"
#include "facts/job/job.h"
#include "facts/job/job_graphs.h"
#include "facts/job/log_damage.h"

namespace tlparse {

// Named as in the flight recorder's analyzer (torch/distributed/flight_recorder), as far as a trace
// has the facts.
enum class MismatchKind : std::uint8_t {
  kType,  // another collective
  kSize,  // another shape
  kDtype,
  kSyntax,   // other arguments: reduction, split sizes
  kGroup,    // another process group
  kOrder,    // the same collective at another place
  kMissing,  // on one side only
  kState,    // missing because the compile did not finish or does not exist
};
std::string_view Name(MismatchKind kind);

struct CollectiveMismatch {
  MismatchKind kind = MismatchKind::kMissing;
  std::int32_t graph_slot = 0;
  std::int64_t ordinal = -1;          // of this side in the graph; -1: missing
  std::int64_t against_ordinal = -1;  // of the others
  std::string item;                   // empty: missing
  std::string against_item;
  // For kOrder: what this side has at the place of the collective in the others, and what the
  // others have at its place in this side. Empty: nothing.
  std::string instead;
  std::string against_instead;
  std::string reason;  // for kState
  // One line, from the others to this side: "all_reduce_ [8] → all_reduce_ [9]", "all_reduce_ [8]
  // here only"; for kOrder the collectives that are in each other's place.
  std::string Text() const;
  // Both are an all_to_all_single at the same place, whose splits may differ by rank.
  bool IsOfSplits() const;
  bool IsWaitForOtherSize() const;
};

// Ranks that schedule the same collectives.
struct CollectiveClass {
  std::vector<RankIndex> ranks;
  std::size_t collectives = 0;  // without waits
  std::size_t waits = 0;
  // Against the reference, in order; the first is the first divergence
  std::vector<CollectiveMismatch> mismatches;
  std::size_t left_out = 0;  // mismatches beyond the first 200 of a graph, or of all graphs
  // Expected differences: shown, but not mismatches.
  std::vector<std::string> notes;

  bool IsMerelyShorter() const {
    return std::all_of(mismatches.begin(), mismatches.end(), [](const CollectiveMismatch& one) {
      return one.kind == MismatchKind::kState;
    });
  }
};

// One graph: the scheduler's list against the generated code, and collectives without a wait.
struct CollectiveParity {
  std::int32_t graph_slot = 0;
  std::vector<RankIndex> ranks;
  std::size_t scheduled = 0;  // without waits
  std::size_t generated = 0;
  // In the code; asynchronous results may be waited for in another graph
  std::size_t missing_waits = 0;
  bool differs = false;  // scheduled and generated names differ
  std::string first_difference;
};

struct CollectiveAnswer {
  Job job;
  JobGraphs graphs;
  LogDamage damage;
  std::vector<CollectiveClass> classes;  // the reference first
  bool has_majority = true;              // of those whose logs do not merely end before the others'
  std::vector<CollectiveParity> parity;  // only graphs with a difference
  // ranks without schedules (cache hits, 2.6): compared through their code
  std::vector<RankIndex> from_code_only;
  // Issued collectives; empty without recorder dumps, profiles and libtrace's logs of them.
  IssuedJob issued;
  // Without any of these, with collectives in graphs: since when PyTorch writes dumps of gloo.
  std::string not_written;
  std::vector<GraphProgress> progress;
  std::vector<CollectiveFinding> problems;
  std::map<std::int64_t, std::string> stacks =
      {};  // if asked for: the user's frames, by IssuedCollective::stack_id
  // What damage of logs may explain is none.
  bool IsDivergent(const CollectiveClass& one) const {
    return &one != &classes.front() && !damage.MayExplain(one.ranks, classes.front().ranks);
  }
  bool HasDivergence() const {
    return std::any_of(classes.begin(), classes.end(),
                       [&](const CollectiveClass& one) { return IsDivergent(one); });
  }
};

struct CollectiveOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
  bool with_stacks = false;
};
// What ranks really issued.
Result<void> AddIssued(Database& database, std::optional<std::int64_t> launch,
                       const CollectiveOptions& options, CollectiveAnswer& answer);
Result<CollectiveAnswer> AnalyzeCollectives(Database& database, const CollectiveOptions& options);
// The same for a job that is loaded already; `answer` has job and graphs.
Result<void> FindCollectiveClasses(Database& database, CollectiveAnswer& answer);

// The differences of two sequences, in order.
struct CollectiveComparison {
  std::vector<CollectiveMismatch> mismatches;  // the ordinals are positions
  std::size_t left_out = 0;                    // beyond the first 200
  // "1 → 5, 2 → 6": groups that are renamed consistently, which is no mismatch.
  std::string renamed_groups;
  bool IsEqual() const { return mismatches.empty(); }
};
CollectiveComparison CompareCollectives(const CollectiveTable& table,
                                        const CollectiveList& reference,
                                        const CollectiveList& other);

}  // namespace tlparse
