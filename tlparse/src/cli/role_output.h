// The roles of a launch, as text and JSON.
#pragma once

#include <vector>

#include "base/json_writer.h"
#include "facts/job/job_tree.h"

namespace tlparse {

// A line for each role, the first of many; nothing without roles.
void PrintRoles(const std::vector<TreeRole>& roles);
// The member "roles" of an object that is open.
void WriteRoles(JsonWriter& json, const std::vector<TreeRole>& roles);

}  // namespace tlparse
