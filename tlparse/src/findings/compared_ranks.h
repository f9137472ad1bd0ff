// Ranks that PyTorch compared with each other, in findings. Internal to findings.
#pragma once

#include <vector>

#include "facts/job/exits.h"
#include "findings/findings.h"

namespace tlparse {

// Makes of `finding`, of an exception, one of the ranks that the messages of `raised` tell apart: those are named, not
// those that raised. `exits`: where ranks were that raised nothing; empty: not known. Whether the messages tell any.
bool SetCompared(Finding& finding, const Exceptions& raised, const std::vector<ProcessExit>& exits);

// Names the rank that had not joined a group when those of `finding` gave up, if their exceptions tell it and it
// raised nothing itself.
void SetNotJoined(Finding& finding, const Exceptions& raised);

}  // namespace tlparse
