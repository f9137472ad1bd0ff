// Which processes `tlparse status` is asked about.
#pragma once

#include <vector>

#include "facts/job/asked_participant.h"
#include "facts/job/job_tree.h"
#include "facts/job/status.h"

namespace tlparse {

// A rank with its children.
void KeepAsked(const AskedParticipant& asked, const JobTree& tree,
               std::vector<ProcessStatus>& rows);

}  // namespace tlparse
