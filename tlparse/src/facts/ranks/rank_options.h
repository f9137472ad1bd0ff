// The options that ranks compiled with, as the metrics of their compiles have them: also those that
// are part of no cache key. Of each rank two compiles are read: the first that it finished, and the
// last that most ranks finished, as a program may set options between compiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// One that the log does not have is said so.
std::string OptionValue(const std::optional<std::string>& value);

class RankOptions {
 public:
  // Nothing is known of a job of very many ranks, or where each rank has options of its own.
  static Result<RankOptions> Load(Database& database, const Job& job);

  struct Change {
    std::string name;                     // "dynamo_config[recompile_limit]"
    std::optional<std::string> from, to;  // nothing: the log does not have the value
    std::int32_t slot = -1;               // of the compile that shows it
  };
  // From `reference` to `rank`; nothing where the log of one does not have them.
  std::vector<Change> Compare(RankIndex reference, RankIndex rank) const;
  // Equal for ranks with equal options, and for those of which nothing is known.
  std::int64_t ClassOf(RankIndex rank) const;

  using Texts = std::array<std::string, 4>;  // of the sections, as in the metrics

 private:
  using Options = std::map<std::string, std::string>;
  // The metrics of one compile of each rank.
  struct Sample {
    std::int32_t slot = -1;
    std::vector<std::int64_t> content_of;  // by participant; -1: unknown
    std::int64_t usual = -1;               // what most ranks have
  };
  Result<bool> AddSample(Database& database, const Job& job,
                         const std::vector<std::int32_t>& slots);
  Result<std::int64_t> AddContent(Database& database, Texts texts);

  std::vector<Options> contents_;
  std::optional<Texts> unread_;                                     // of the first of them
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> known_;  // contents, by their texts
  std::vector<Sample> samples_;
};

}  // namespace tlparse
