// The findings of a cache answer while they are being made. Internal to facts/cache.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/cache/cache.h"

namespace tlparse {

// Findings by cause and ranks, so that each is reported once.
class FindingCollector {
 public:
  explicit FindingCollector(CacheAnswer& answer) : answer_(answer) {}

  // A lookup slot of -1: of no lookup.
  void Add(CacheFinding finding, std::int32_t lookup_slot, std::int32_t compile_slot);
  // Adds a finding that is complete, and that no other joins.
  void AddApart(CacheFinding finding) { answer_.findings.push_back(std::move(finding)); }

 private:
  void SayWhichInputs(const CacheFinding& other, std::int32_t compile_slot,
                      CacheFinding& stored) const;

  using Key = std::tuple<CauseKind, std::vector<RankIndex>, std::string, std::string>;
  CacheAnswer& answer_;
  std::map<Key, std::size_t> index_;
};

// Compiles that some ranks have and others do not.
Result<void> FindMissingCompiles(Database& database, CacheAnswer& answer,
                                 FindingCollector& collector);

// Whether most of the ranks that made the lookups of a finding differ in nothing of its kind.
void FindMajorities(CacheAnswer& answer);

}  // namespace tlparse
