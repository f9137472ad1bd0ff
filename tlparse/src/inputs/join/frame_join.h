// Joins by the line of the generated code (K6): Python frames of a profile name the calling line.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// For graph calls with a known graph, and kernels of it without a run in the call: finds the Python frame that the kernel's line of
// generated code called. The op or CPU kernel that ran inside the frame becomes the kernel's run; if there is none (the profile has
// no events of CPU kernels), the frame itself does. Nothing is joined in profiles with kernels on devices, where a frame is the time
// of enqueueing. Call after JoinProfile.
Result<void> JoinFrames(Database& database, std::int64_t profile_id);

}  // namespace tlparse
