// Keys and outputs of made-up compiles, for the tests of caches.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "libtrace/cache/compile_cache.h"

namespace libtrace::testing {

inline CacheKey KeyOf(std::string_view text) {
  return CacheKeyBuilder("t").Add("text", text).Build();
}

inline CompileOutput Output(std::string artifact, std::string guard = {}) {
  CompileOutput output;
  output.entry.artifact = std::move(artifact);
  output.entry.guard = std::move(guard);
  return output;
}

inline CompileOutput FailToCompile() { throw std::logic_error("must not compile"); }

}  // namespace libtrace::testing
