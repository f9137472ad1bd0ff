// Joins by the line of the generated code (K6): Python frames of a profile name the calling line.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// For the calls of one profile whose graph is known: a kernel of the graph that no run in the call is
// joined with yet is the op, or the kernel run, that ran inside a frame called from the kernel's
// line; if the profile recorded neither (CPU kernels without kernel events), the frame itself becomes
// a run of it. Profiles with kernels on devices are left alone: frames enqueue those. Call after JoinProfile.
Result<void> JoinFrames(Database& database, std::int64_t profile_id);

}  // namespace tlparse
