// States of cache lookups, as the server stores them: by number.
#pragma once

#include <string>

#include "enums/cache_event.h"

namespace tlparse {

// The states for which a fact holds, as an SQL list: StatesThat(IsMiss) is "(1,2,5)".
inline std::string StatesThat(bool (*fact)(CacheState)) {
  std::string list;
  for (int state = 0; state < 256; ++state)
    if (fact(static_cast<CacheState>(state)))
      list += (list.empty() ? "(" : ",") + std::to_string(state);
  return list + ")";
}

}  // namespace tlparse
