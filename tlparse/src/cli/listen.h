// The port that `serve` and `watch --serve` listen on.
#pragma once

#include <optional>

#include "base/result.h"

namespace tlparse {

// The port if none is given, so that links stay good from one call to the next.
inline constexpr int kUsualPort = 8577;

// `create` makes a server that listens on a port. It is called with `port`; without one with the
// usual port, and if that is taken (kIo) with 0, which is any free one.
template <typename Create>
auto Listen(std::optional<int> port, Create create) {
  if (port) return create(*port);
  auto server = create(kUsualPort);
  if (server || server.error().code != ErrorCode::kIo) return server;
  return create(0);
}

}  // namespace tlparse
