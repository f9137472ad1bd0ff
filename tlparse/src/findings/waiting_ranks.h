// Failures of ranks that waited for others: which of them were elsewhere, or late.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "facts/job/exits.h"
#include "findings/findings.h"

namespace tlparse {

struct FindingContext;

// "/app/train.py:21 in validate, which called barrier"
std::optional<FindingPlace> PlaceOfStack(std::string_view where);

// Ranks that gave up waiting, or found others gone, at several lines: they did not make the same calls.
// The few are named first. Or at one line, some to send and some to receive, where `are_all` of the job. False: they
// did not.
bool SetApart(Finding& finding, const Exceptions& raised, bool are_all);

// Ranks that found others gone at the line where these had given up waiting, some time later: with one
// timeout for all they came later by as long. False: none did, or times are not known.
bool SetLate(Finding& finding, const Exceptions& raised);

// What C++ or the C library printed before the process was aborted. `is_own`: it is the cause itself, no
// consequence of what other ranks did.
void SayPrinted(Finding& finding, const ProcessExit& exit, bool is_own);

// `known`: findings so far. Of an end by a signal where the program was then; and of one whose calls did not match those of the
// others, or that waited in vain, where the ranks were that were asked to end after it.
void SayWhereTheyWere(const std::vector<Finding>& known, Finding& finding, const ProcessExit& exit,
                      const std::vector<ProcessExit>& exits);

// Where other threads of the ranks at its place were, if a hang was noticed there before.
Result<void> SayOtherThreads(const FindingContext& context, Finding& finding);

// The end of ranks that had ended as if they were done when `first` found a process gone, or gave up waiting;
// nothing: none had.
std::optional<Finding> EndOfDone(const FindingContext& context,
                                 const std::vector<ProcessExit>& exits, const ProcessExit& first);

}  // namespace tlparse
