// The roles of a launch, as text; in JSON: rank_fields.h.
#pragma once

#include <vector>

#include "facts/job/job_tree.h"

namespace tlparse {

// A line for each role, the first of many; nothing without roles.
void PrintRoles(const std::vector<TreeRole>& roles);

}  // namespace tlparse
