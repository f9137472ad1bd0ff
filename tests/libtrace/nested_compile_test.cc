// Processes and threads that share a directory, and whose compiles need each other's keys.
#include "tests/libtrace/nested_compiles.h"

namespace libtrace {
namespace {

TEST_CASE("Compiles of several processes that need each other's keys end", "[shared_cache]") {
  testing::CheckRings([](const std::string& directory) {
    return std::make_unique<CompileCache>(
        CompileCacheOptions{.layer = "test",
                            .directory = directory + "/cache",
                            .max_nested_wait = std::chrono::milliseconds(300)});
  });
}

TEST_CASE("A nested lookup waits for a process that does not wait for it", "[shared_cache]") {
  const testing::TemporaryDirectory directory;
  const auto make = [&] {
    return CompileCacheOptions{.layer = "test",
                               .directory = directory.string() + "/cache",
                               .max_nested_wait = std::chrono::milliseconds(1)};
  };
  std::vector<std::string> keys{testing::KeyOf("0").text, testing::KeyOf("1").text};
  std::sort(keys.begin(), keys.end());
  int begun[2];
  REQUIRE(pipe(begun) == 0);
  const pid_t child = fork();
  if (child == 0) {  // compiles the later key
    CompileCache cache(make());
    cache.GetOrCompile({keys[1], {}}, {}, [&] {
      (void)!write(begun[1], "b", 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      return testing::Output("of the other process");
    });
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(begun[0], &byte, 1) == 1);
  CompileCache cache(make());
  const CacheResult result = cache.GetOrCompile({keys[0], {}}, {}, [&] {
    const CacheResult nested = cache.GetOrCompile({keys[1], {}}, {}, testing::FailToCompile);
    return testing::Output(nested.entry.artifact);
  });
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(result.entry.artifact == "of the other process");
  close(begun[0]);
  close(begun[1]);
}

}  // namespace
}  // namespace libtrace
