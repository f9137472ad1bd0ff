// What a rank's processor did, by its profile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct TimeSpan {
  std::int64_t from_ns = 0, to_ns = 0;
  std::int64_t Length() const { return to_ns - from_ns; }
};
std::int64_t SharedNs(const TimeSpan& a, const TimeSpan& b);

// A time in which an op worked that no other of its thread was inside of.
struct WorkSpan {
  TimeSpan time;
  std::int64_t name_id = 0;  // of RunNames; 0: a call of a compiled graph
};

// The names of ops and kernels in the profiles of a run, by text_row.id.
using RunNames = std::map<std::int64_t, std::string>;
Result<RunNames> LoadRunNames(Database& database, std::int64_t run_id);

// By time. Left out is where a collective waits or may: its own ops, and what Python code runs in between
// (functions of autograd and their hooks), for as long as no op of theirs works. Nothing: no op is in
// the rank's profile. `is_of_devices`: the kernels of its devices instead.
Result<std::optional<std::vector<WorkSpan>>> LoadRankWork(Database& database, std::int64_t run_id,
                                                          std::int64_t rank, const RunNames& names,
                                                          bool is_of_devices);

// What took most of some times.
struct MostWork {
  std::int64_t idle_ns = 0;     // no op worked, for longer than Python takes between two
  std::int64_t compile_ns = 0;  // it compiled
  std::string op = {};          // that with the longest time
  std::int64_t op_ns = 0;
};
// `times` do not overlap and are ascending.
MostWork MostWorkIn(const std::vector<TimeSpan>& times, const std::vector<WorkSpan>& work,
                    const RunNames& names);

// How long an op or a kernel ran in these times.
std::int64_t TimeOfOp(const std::vector<TimeSpan>& times, const std::vector<WorkSpan>& work,
                      const RunNames& names, const std::string& op);

// The user's function in which a rank was for longest in these times, and in no other of the user's that it
// called, if that is half of them: "augment (train.py:5)", its first line. Empty: none, or the profile has no
// stacks.
struct FunctionTime {
  std::string name = {};
  std::int64_t ns = 0;
};
Result<FunctionTime> FunctionIn(Database& database, std::int64_t run_id, std::int64_t rank,
                                const std::vector<TimeSpan>& times);

// Of these times the parts, a millisecond or longer, in which no op worked: Python takes less between two.
std::vector<TimeSpan> WithoutWork(const std::vector<TimeSpan>& times,
                                  const std::vector<WorkSpan>& work);

}  // namespace tlparse
