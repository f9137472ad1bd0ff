// What changed between two runs, from the servers' tables.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "facts/cache/cause.h"
#include "fleet/fleet_answer.h"
#include "store/hash128.h"

namespace tlparse {

// An empty section for AddChanges.
FleetSection ChangesSection();
// Adds a row for each cause: components of cache keys, versions of torch and Python, generated code of
// the function. Returns how many.
Result<std::size_t> AddChanges(FleetReader& reader, const std::string& run_before,
                               const std::string& run_after, const std::string& function,
                               FleetSection& section);

// A component that only one side has.
struct OneSided {
  std::string name;
  Hash128 key;
  bool is_after = false;
};
// Pairs them by name, with hashes and values, for FindCauses.
Result<std::vector<ComponentDifference>> ToDifferences(FleetReader& reader,
                                                       const std::vector<OneSided>& components);

}  // namespace tlparse
