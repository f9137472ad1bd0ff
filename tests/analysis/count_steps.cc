// Preloaded into tlparse by test_steps.py: adds up the steps of SQLite's virtual machine of all
// connections, and appends their sum to the file $COUNT_STEPS when the program ends.
#include <dlfcn.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kInterval = 1;  // what a statement has left of a longer one is not counted
std::atomic<long long> steps = 0;

int Count(void*) {
  steps += kInterval;
  return 0;
}

struct AtEnd {
  ~AtEnd() {
    const char* path = std::getenv("COUNT_STEPS");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, "%lld\n", steps.load());
    std::fclose(file);
  }
} at_end;

}  // namespace

extern "C" int sqlite3_open_v2(const char* path, sqlite3** connection, int flags, const char* vfs) {
  using Open = int(const char*, sqlite3**, int, const char*);
  const int result =
      reinterpret_cast<Open*>(dlsym(RTLD_NEXT, "sqlite3_open_v2"))(path, connection, flags, vfs);
  if (result == SQLITE_OK) sqlite3_progress_handler(*connection, kInterval, &Count, nullptr);
  return result;
}
