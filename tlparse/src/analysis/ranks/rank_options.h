// The options that ranks compiled with, as the metrics of their compiles have them: also those that
// are part of no cache key. Of each rank one compile is read, the first of the job that it finished.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ranks/job.h"
#include "base/result.h"
#include "store/database.h"

namespace tlparse {

class RankOptions {
 public:
  // Nothing is known of a job of very many ranks, or where each rank has options of its own.
  static Result<RankOptions> Load(Database& database, const Job& job);

  struct Change {
    std::string name;  // "dynamo_config[recompile_limit]"
    std::string from, to;
  };
  // From `reference` to `rank`; nothing where the log of one does not have them.
  std::vector<Change> Compare(RankIndex reference, RankIndex rank) const;
  // Equal for ranks with equal options, and for those of which nothing is known.
  std::int64_t ClassOf(RankIndex rank) const {
    return content_of_.empty() ? 0 : ClassOfContent(content_of_[static_cast<std::size_t>(rank)]);
  }
  // The compile whose metrics were read; -1: none.
  std::int32_t SlotOf(RankIndex rank) const {
    return slot_of_.empty() ? -1 : slot_of_[static_cast<std::size_t>(rank)];
  }

  using Texts = std::array<std::string, 4>;  // of the sections, as in the metrics

 private:
  using Options = std::map<std::string, std::string>;
  Result<std::int64_t> AddContent(Database& database, const Texts& texts);
  void KeepOneCompile();
  std::int64_t ClassOfContent(std::int64_t content) const { return content < 0 ? usual_ : content; }

  std::vector<Options> contents_;
  std::vector<std::int64_t> content_of_;  // by participant; -1: unknown
  std::vector<std::int32_t> slot_of_;     // by participant
  std::int64_t usual_ = -1;               // what most ranks have
};

}  // namespace tlparse
