// The rank, or the process, of which alone an answer is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/job/job.h"

namespace tlparse {

struct AskedParticipant {
  std::optional<std::int64_t> rank, pid;

  bool IsGiven() const { return rank || pid; }
  // "rank 2", "process 4242", "process 4242 of rank 2".
  std::string Text() const;
  // "only what involves rank 2; left out: 3 profiles of others"
  std::string Only(std::size_t left_out, std::string_view what) const;
  // Of a job: those with a log; empty if only other files are of it.
  std::vector<RankIndex> In(const Job& job) const;
};

// kNotFound, with what there is: no input of the run (nothing: of any run) and launch is of it. A file
// whose launch is not known may be of any.
Result<void> CheckAsked(Database& database, const AskedParticipant& asked,
                        const std::optional<std::int64_t>& run_id,
                        const std::optional<std::int64_t>& launch);
// The same of the launch of a run that ChooseLaunch chooses.
Result<void> CheckAskedOfLaunch(Database& database, const AskedParticipant& asked,
                                std::string_view run_name,
                                const std::optional<std::int64_t>& ordinal);

// By what findings name it.
struct AskedNames {
  std::vector<std::int64_t> ranks;
  std::vector<std::string> logs;  // participants without rank
};
Result<AskedNames> NamesOfAsked(Database& database, const AskedParticipant& asked,
                                std::int64_t run_id, std::int64_t launch);

}  // namespace tlparse
