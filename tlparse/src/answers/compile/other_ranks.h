// What sets a compile apart from the same one of other ranks. Internal to answers/compile.
#pragma once

#include "answers/compile/compile.h"

namespace tlparse {

// Fills in what an answer says of other ranks of the role, and who it is about.
Result<void> CompareWithOthers(Database& database, CompileAnswer& answer);

}  // namespace tlparse
