// What follows from the end of a process. Internal to findings.
#pragma once

#include <vector>

#include "facts/job/exits.h"
#include "findings/findings.h"

namespace tlparse {

// Makes what follows from `cause`, an end, its evidence: where the log of its rank ends, what that did
// not reach, and where the logs of others end that were asked to end afterwards. `is_root`: it is no
// consequence of another end; where all logs end, when the logs do not show which was first, follows from
// it.
void TakeConsequences(std::vector<Finding>& findings, Finding& cause,
                      const std::vector<ProcessExit>& exits, bool is_root);

// Ranks that issued something else than those which waited for them: whichever rank ends first with an
// exit code, or as others did not come, ends because of it. The last finding, of that end, goes behind theirs.
void MoveBehindDivergence(std::vector<Finding>& findings);

// Where all logs end, and which rank was first is not known, or a rank noticed that collectives did not
// match: that another rank compiled another thing than the rest goes before it, where it alone is known.
void MoveBehindOther(std::vector<Finding>& findings);

}  // namespace tlparse
