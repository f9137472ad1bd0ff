// Why the results of cache lookups differ between ranks, and how much time the caches saved. The
// answer of `tlparse cache`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/cache/cache_lookups.h"
#include "facts/cache/cause.h"
#include "facts/cache/one_artifact.h"
#include "facts/cache/precompiled.h"
#include "facts/job/job.h"
#include "facts/job/log_damage.h"

namespace tlparse {

// Ranks whose lookup ended the same way with the same key, up to expected differences.
struct CacheClass {
  CacheState state = CacheState::kMiss;
  std::vector<RankIndex> ranks;
  // More than one: the keys have expected differences, or differ for a reason not in the log
  std::size_t distinct_keys = 0;
  std::string key;  // of the lowest rank; empty: none
  std::string bypass_reason;
  std::string guard;         // the guard that failed
  std::string remote_error;  // of the first lookup
};

struct CacheLookupAnswer {
  std::int32_t lookup_slot = 0;
  std::vector<CacheClass> classes;  // the reference first, then by size
  bool has_majority = true;  // false: classes are equals, compared with that of the lowest rank
  std::vector<RankIndex> without_lookup;  // have the compile, finished, but not the lookup
  // Did not finish the compile, after which a lookup's record is written; or their logs end early.
  std::vector<RankIndex> unfinished;
};

// One cause, reported once for all lookups where it sets the same ranks apart.
struct CacheFinding {
  Cause cause;
  std::vector<RankIndex> ranks;
  std::vector<RankIndex> against;
  bool has_majority = true;
  std::vector<std::int32_t> lookup_slots;
  std::vector<std::int32_t> compile_slots;
  std::string state;          // of these ranks: "miss"
  std::string against_state;  // of the others: "hit"
  // Where the components came from, if not from the lookups themselves (2.14 logs none for
  // AOTAutograd).
  std::string fallback;
  // The first node that differs, for kGraph, and where it comes from.
  std::string node, against_node, source;
  bool has_other_nodes = false;   // not only other arguments or types
  bool is_of_parameters = false;  // kGraph: as GraphDifference has them
  bool is_of_numbers = false;
  bool is_of_first = false;  // kInputs: the cause is that of the first compile only

  // The ranks, and those that they are compared with.
  std::vector<RankIndex> Sides() const {
    std::vector<RankIndex> both = ranks;
    both.insert(both.end(), against.begin(), against.end());
    return both;
  }
};

// One key, two generated codes: an error of the cache, not of the job.
struct SameKeyCode {
  std::string key;
  std::vector<RankIndex> ranks;  // with the first code
  std::vector<RankIndex> other_ranks;
  std::int64_t record_id = 0, other_record_id = 0;
  std::int64_t compile_id = 0;  // of the first code
  std::string target;           // TargetChange; empty: none, or not examined
  std::string diff;  // unified, of the normalised codes; empty beyond the first hundred findings
};

// For a lookup that missed: the earlier key with the fewest differences. For one whose key was
// found but whose guards failed: the earlier lookup of that key, and the guard.
struct ClosestKey {
  std::int32_t lookup = 0;    // index into LookupIndex::lookups
  std::string earlier_title;  // the lookup that had the key; empty: not in the database
  std::string earlier_run;    // empty: this run
  std::size_t difference_count = 0;
  std::vector<Cause> causes;  // empty: an earlier lookup had the same key (evicted, other store)
};

struct CacheEconomics {
  std::string layer;
  std::int64_t hits = 0, misses = 0, guard_misses = 0, remote_errors = 0, bypasses = 0,
               disabled = 0;
  std::optional<std::int64_t> time_saved_ns;  // by hits; nothing: not in the log
  std::optional<std::int64_t> time_taken_ns;  // by misses; nothing: not in the log
  std::int64_t waited_ns = 0;                 // for another compile of the same key
  std::int64_t waits_given_up = 0;            // lookups that compiled the key as well
  // The part of these times that is of lookups inside another layer's lookup, whose time includes
  // the same work.
  struct Within {
    std::int64_t saved_ns = 0, taken_ns = 0;
  };
  std::map<std::string, Within> within;  // by the outer layer
  struct Reason {
    std::string text;
    std::int64_t count = 0;
  };
  std::vector<Reason> bypass_reasons;  // most frequent first
};

struct CacheAnswer {
  Job job;
  JobGraphs graphs;
  LogDamage damage;
  LookupIndex lookups;
  std::vector<CacheLookupAnswer> lookup_answers;  // in the order of lookups.order()
  std::vector<CacheFinding> findings;  // divergences first, then notes; most significant first
  std::vector<SameKeyCode> same_key_codes;
  std::vector<ClosestKey> closest_keys;
  std::vector<CacheEconomics> economics;
  PrecompiledCode precompiled;
  std::optional<OneArtifact> one_artifact;  // nothing: not asked
  // Without a lookup of AOTAutograd's cache: what WhyNotWritten says of it.
  std::string not_written;
  // Lookups of the launch that are not among these, and why; empty: none, or AnalyzeCache was not asked.
  std::string not_counted;

  // Whether damage of logs may explain it: it is no divergence then.
  bool MayBeDamage(const CacheFinding& finding) const;
  bool HasDivergence() const;  // a finding that is not expected, or same_key_codes
};

struct CacheOptions {
  std::string run;                     // empty: the latest
  std::optional<std::int64_t> launch;  // ordinal; nothing: the latest
  // closest earlier keys of this participant; default: the only one
  std::optional<std::string> rank;
  bool with_closest_keys = true;
  bool with_code_check = true;
  bool with_one_artifact = false;
};

// Reads the database only. kNotFound: no such run or rank.
Result<CacheAnswer> AnalyzeCache(Database& database, const CacheOptions& options);
// The same of a job that is loaded already.
Result<CacheAnswer> AnalyzeCacheOf(Database& database, Job job, const CacheOptions& options);
// Of a part of the job of `whole`, without closest keys.
Result<CacheAnswer> AnalyzeCachePart(Database& database, const CacheAnswer& whole,
                                     const std::vector<RankIndex>& members);

// The parts, for answers that need more than one.
Result<void> AddOneArtifact(Database& database, const CacheOptions& options, CacheAnswer& answer);
Result<void> AddClosestKeys(Database& database, const CacheOptions& options, CacheAnswer& answer);
Result<void> FindCacheClasses(Database& database, CacheAnswer& answer);
Result<std::vector<SameKeyCode>> FindSameKeyCodes(Database& database, const Job& job);
Result<std::vector<ClosestKey>> FindClosestKeys(Database& database, const CacheAnswer& answer,
                                                RankIndex participant);
// Of the lookups of all participants, or of these.
Result<std::vector<CacheEconomics>> SumEconomics(Database& database, const LookupIndex& lookups,
                                                 const std::vector<RankIndex>* only = nullptr);

}  // namespace tlparse
