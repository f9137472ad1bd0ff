#include "report/task_pool.h"

#include <atomic>
#include <new>

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("Want of memory in a task is an error of the report", "[task_pool]") {
  const ScratchDatabase scratch;
  TaskPool pool;
  for (int i = 0; i < 8; ++i) {
    pool.Add([](Database&) -> Result<void> { throw std::bad_alloc(); });
  }
  const Result<void> done = pool.Run(scratch.database.path(), 4);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::kIo);
  CHECK(done.error().message == "not enough memory for the report");
}

TEST_CASE("Tasks may add tasks, and all are run", "[task_pool]") {
  const ScratchDatabase scratch;
  TaskPool pool;
  std::atomic<int> count = 0;
  pool.Add([&](Database&) -> Result<void> {
    for (int i = 0; i < 100; ++i) {
      pool.Add([&](Database&) -> Result<void> {
        ++count;
        return {};
      });
    }
    return {};
  });
  REQUIRE(pool.Run(scratch.database.path(), 4));
  CHECK(count == 100);
}
