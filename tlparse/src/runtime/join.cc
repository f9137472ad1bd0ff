#include "runtime/join.h"

namespace tlparse {

Result<void> JoinRun(Database& database, std::int64_t run_id) {
  (void)database, (void)run_id;
  return {};
}

}  // namespace tlparse
