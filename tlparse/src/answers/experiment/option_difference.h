// The options and environment variables in which two runs, or two ranks, differ, as changes: what
// `tlparse bisect` looks among.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/compiles/change.h"
#include "store/database.h"

namespace tlparse {

// One variable or option: how each run or rank has it.
struct OptionDifference {
  Change good, bad;
};

struct OptionDifferences {
  std::vector<OptionDifference> differences;  // variables first, by name
  // Names of options that differ, but whose values cannot be set: lists, values that the log cuts or
  // does not have, and options that one of the versions does not have.
  std::vector<std::string> left_out;
};

// Of the first compile of each run whose metrics name its options, and of the variables that
// `tlparse run` recorded. The databases may be one.
Result<OptionDifferences> CompareOptions(Database& good, std::int64_t good_run_id, Database& bad,
                                         std::int64_t bad_run_id);

// The same of two ranks of one run, which have the variables of one command. kNotFound: the logs do
// not name the options of one.
Result<OptionDifferences> CompareOptionsOfRanks(Database& database, std::int64_t run_id,
                                                std::int64_t good_rank, std::int64_t bad_rank);

}  // namespace tlparse
