#include "report/task_pool.h"

#include <atomic>
#include <new>

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test

namespace {

// An empty database that others may open to read.
Database MakeDatabase(const TempDirectory& directory) {
  const std::string path = directory.path() + "/trace.db";
  REQUIRE(CreateDatabase(path));
  return OpenOrThrow(path, Database::Mode::kReadOnly);
}

}  // namespace

TEST_CASE("Want of memory in a task is an error of the report", "[task_pool]") {
  const TempDirectory directory;
  Database database = MakeDatabase(directory);
  TaskPool pool;
  for (int i = 0; i < 8; ++i) {
    pool.Add(LoadStep::kTree, [](Database&) -> Result<void> { throw std::bad_alloc(); });
  }
  const Result<void> done = pool.Run(database, GENERATE(1, 4));
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::kIo);
  CHECK(done.error().message == "not enough memory for the report");
}

TEST_CASE("Tasks may add tasks, and all are run", "[task_pool]") {
  const TempDirectory directory;
  Database database = MakeDatabase(directory);
  TaskPool pool;
  std::atomic<int> count = 0;
  pool.Add(LoadStep::kTree, [&](Database&) -> Result<void> {
    for (int i = 0; i < 100; ++i) {
      pool.Add(LoadStep::kTree, [&](Database&) -> Result<void> {
        ++count;
        return {};
      });
    }
    return {};
  });
  REQUIRE(pool.Run(database, GENERATE(1, 4)));
  CHECK(count == 100);
}
