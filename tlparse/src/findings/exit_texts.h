// What is said of the end of a process. Internal to findings.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {

inline constexpr std::string_view kLookForMemory =
    "look whether its memory ran out: the kernel's log (dmesg) names the processes that it killed; "
    "a limit of CPU time (ulimit -t), a batch system or a user ends processes so as well";

// "was ended by SIGKILL", "ended with exit code 1"
std::string HowItEnded(const ProcessExit& exit);

// "At …, …; it ended with exit code 1 0.50 s later (run.json)."
std::string WhatCame(const FindingContext& context, const ProcessExit& exit);

// Title, cause and source of the failure that torchrun reported or logged, as `exit`.
void SayReported(Finding& finding, const PrintedFailures::Root& root, const ProcessExit& exit);

// " Ranks 0,1 lived on.": behind the end of the command; empty: it is another process, or none did.
std::string WhoLivedOn(const std::vector<ProcessExit>& exits, const ProcessExit& exit);

// "Rank 2", "The command"; of a program that the command had started "'python a.py' (pid 12)".
std::string Subject(const std::optional<std::int64_t>& rank);
std::string Subject(const ProcessExit& exit);

// Of ranks that ended alike: all are named. `known`: the ranks of the job.
void SetAlike(Finding& finding, const ProcessExit& exit, const std::vector<std::int64_t>& alike,
              const std::set<std::int64_t>& known);

std::string QueryOf(const FatalException& raised);
std::string QueryOf(const ProcessExit& exit);

// Of an exception that all ranks raise since some of them failed, as that of a checkpoint: the title names these, and
// what they raised. `who`: raised it.
void NameFailedRanks(Finding& finding, const FatalException& raised, std::string who);

// An exit code, or an exception that says that others did not come.
bool FollowsFromOthers(const ProcessExit& exit);

// Whether the program was done, and ended its ranks itself: its command ended with exit code 0 after
// them, and no rank lived on.
bool WasOfDone(const std::vector<ProcessExit>& exits, const ProcessExit& exit);

// A note on such a signal.
void AddOfDone(FindingContext& context, const std::vector<ProcessExit>& exits,
               const ProcessExit& exit);

// Whether the process of the rank had not ended when the command had.
bool LivedOn(const std::vector<ProcessExit>& exits, std::int64_t rank);

// Says of which operations an index is that a kernel of generated code refuses, and places the finding at
// their line, if it is one: the line of the call is the function's.
Result<void> SayIndex(const FindingContext& context, const std::string& kernel, Finding& finding);

// Whether a rank raised nothing and was asked to end at a line of the user's.
bool HasRankElsewhere(const std::vector<ProcessExit>& exits, const ProcessExit& exit);

}  // namespace tlparse
