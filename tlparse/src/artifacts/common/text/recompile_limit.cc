#include "artifacts/common/text/recompile_limit.h"

namespace tlparse {

bool IsRecompileLimit(std::string_view type, std::string_view reason) {
  return type.ends_with("RecompileLimitExceeded") || type.ends_with("FailOnRecompileLimitHit") ||
         type.ends_with("FailOnCacheLimitHit") || type.ends_with("CacheLimitExceeded") ||
         reason.starts_with("Dynamo recompile limit exceeded") ||
         reason.starts_with("Dynamo cache limit exceeded") ||
         reason.starts_with("cache_size_limit reached") ||
         reason.starts_with("recompile_limit reached") ||
         reason.starts_with("accumulated_cache_size_limit reached") ||
         reason.starts_with("accumulated_recompile_limit reached");
}

bool IsHardRecompileLimit(std::string_view type) {
  return type.ends_with("FailOnRecompileLimitHit") || type.ends_with("FailOnCacheLimitHit");
}

bool IsSilentRecompileLimit(std::string_view type) {
  return type.ends_with("RecompileLimitExceeded") || type.ends_with("CacheLimitExceeded");
}

}  // namespace tlparse
