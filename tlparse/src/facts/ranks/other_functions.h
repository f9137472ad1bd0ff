// Whether two ranks compiled another function, or another text of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// A function with the same graph on two ranks that begins in other lines of its file, which then had
// another text.
struct MovedFunction {
  std::string name;
  std::int64_t old_line = 0, new_line = 0;
};

// The first of `file`, a whole path; nothing: none is known. Names of methods may be of another class.
std::optional<MovedFunction> FindMoved(Database& database, const Job& job, RankIndex old_rank,
                                       RankIndex new_rank, const std::string& file);

// Whether compiles of two ranks with different graphs are of two functions. Those of one name are, at
// other lines of a file that is not known to have had another text, or in files of other names.
bool AreOfOtherFunctions(Database& database, const Job& job, const JobCompile& a,
                         const JobCompile& b);

// "block"; "block (train.py:9)" beside another one of the name.
std::string NameBeside(const Job& job, const JobCompile& compile, const JobCompile& other);

// Of these slots, without those of which two ranks compiled other functions.
std::vector<std::int32_t> OfOneFunction(Database& database, const Job& job, RankIndex a,
                                        RankIndex b, std::vector<std::int32_t> slots);

}  // namespace tlparse
