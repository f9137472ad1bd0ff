#pragma once

namespace tlparse {

// Where people expect the page: links stay good from one call to the next.
inline constexpr int kUsualPort = 8577;

}  // namespace tlparse
