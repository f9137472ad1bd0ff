// Modules of a profile: how they are nested, and which kernels they enqueued.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// What the names of their frames begin with; the class and a number follow.
inline constexpr std::string_view kModuleFrame = "nn.Module: ";

// Adds module_link_row and kernel_module_link_row of one profile, by the rule in
// schemas/sql/inputs/module.sql. Call it when the profile's kernels are joined.
Result<void> JoinModules(Database& database, std::int64_t profile_id);

}  // namespace tlparse
