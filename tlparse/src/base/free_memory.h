// Limits the memory of a program with several phases.
#pragma once

namespace tlparse {

// Gives freed memory back to the system. Call it between two phases: the allocator would keep the pieces that the first freed, and
// the second would take others in addition.
void GiveBackFreeMemory();

}  // namespace tlparse
