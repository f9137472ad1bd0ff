// Notes of joins that answers distinguish: they mean that something is unknown, not that it is so.
#pragma once

#include <string_view>

namespace tlparse {

// Of kernels of a device: which graph call enqueued them, if any, is unknown.
inline constexpr std::string_view kLaunchNotInProfile = "its launch is not in the profile";
// Of kernels that only Inductor's code runs: the calls of an AOTInductor package are not in a profile.
inline constexpr std::string_view kCallNotInProfile =
    "a kernel of Inductor; the profile holds no graph call around it";
// Of kernels of a device: a CUDA graph is launched as a whole, and no op of its capture is around it.
inline constexpr std::string_view kGraphReplay = "in the replay of a CUDA graph";
inline constexpr std::string_view kLaunchNotInLog =
    "libtrace does not say which graph call enqueued it";

}  // namespace tlparse
