// What a program with several phases does between them.
#pragma once

namespace tlparse {

// Gives freed memory back to the system. The allocator keeps it otherwise, and what follows takes
// other pieces: memory is that of both.
void GiveBackFreeMemory();

}  // namespace tlparse
