// Joins of compile phases (K7), for profiles that cover a compile.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "inputs/join/join_profile.h"
#include "store/database.h"

namespace tlparse {

// Ops of one profile that are phases of a compile (entire_frame_compile, inductor_compile, …) get the
// compile that the annotation after their start names: "<phase>_data: …, compile_id=0/1". Call
// after JoinProfile. `process_id`: the process that the profile measured.
Result<void> JoinPhases(Database& database, const CompiledCode& code, std::int64_t profile_id,
                        std::optional<std::int64_t> process_id);

}  // namespace tlparse
