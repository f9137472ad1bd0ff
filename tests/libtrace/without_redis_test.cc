// The caches as -DTRACEKIT_WITH_REDIS=OFF builds them.
#include "libtrace/cache/compile_cache.h"
#include "tests/catch2.h"

namespace libtrace {
namespace {

TEST_CASE("Redis: a store that was asked for and is not compiled in is an error") {
  RedisOptions options;
  options.allow_unauthenticated = true;
  CompileCacheOptions cache_options{.layer = "acme"};
  const Status status = MakeRedisStore(options, cache_options.remote);
  CHECK(status.message() == "this libtrace was built without Redis (TRACEKIT_WITH_REDIS=OFF)");
  CHECK(cache_options.remote == nullptr);
}

}  // namespace
}  // namespace libtrace
