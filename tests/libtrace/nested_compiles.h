// Compiles that need each other's key: each holds one and asks for the next one's.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/log_text.h"

namespace libtrace::testing {

// Makes the caches of one process.
using MakeCache = std::function<std::unique_ptr<CompileCache>()>;

// What processes that are forked from here share.
struct SharedCounts {
  std::atomic<int> inside{0}, compiled{0};

  static SharedCounts* New() {
    void* const memory = mmap(nullptr, sizeof(SharedCounts), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) SharedCounts;
  }
};

// One compile of `keys[i]`, which asks for the next key when all are inside. True: it has both.
inline bool CompileNested(CompileCache& cache, const std::vector<std::string>& keys, size_t i,
                          SharedCounts& counts) {
  const std::string& nested_key = keys[(i + 1) % keys.size()];
  const CacheResult outer = cache.GetOrCompile({keys[i], {}}, {}, [&] {
    ++counts.inside;
    ++counts.compiled;
    while (counts.inside < static_cast<int>(keys.size()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const CacheResult nested = cache.GetOrCompile({nested_key, {}}, {}, [&] {
      ++counts.compiled;
      return Output("code");
    });
    return Output(nested.entry.artifact);
  });
  return outer.entry.artifact == "code";
}

// A ring of compiles; `per_process` tells how many of them are threads of each process. Gives how
// many compiles there were, or -1 if a process was killed for taking too long.
inline int RunRing(const std::vector<std::string>& keys, const std::vector<size_t>& per_process,
                   const MakeCache& make_cache, const std::string& traces) {
  SharedCounts* const counts = SharedCounts::New();
  std::vector<pid_t> children;
  size_t first = 0;
  for (const size_t count : per_process) {
    children.push_back(fork());
    if (children.back() == 0) {
      alarm(60);
      Options options;
      options.directory = traces;
      Start(std::move(options));
      std::atomic<size_t> right_count{0};
      {
        const std::unique_ptr<CompileCache> cache = make_cache();
        std::vector<std::thread> threads;
        for (size_t i = first; i < first + count; ++i)
          threads.emplace_back([&, i] { right_count += CompileNested(*cache, keys, i, *counts); });
        for (std::thread& thread : threads) thread.join();
      }
      Stop();
      _exit(right_count == count ? 0 : 1);
    }
    first += count;
  }
  bool is_right = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    is_right &= status == 0;
  }
  const int compiled = counts->compiled;
  munmap(counts, sizeof *counts);
  return is_right ? compiled : -1;
}

// How many lookups have given up waiting, by the logs in `traces`.
inline int GivenUpCount(const std::string& traces, const std::string& why) {
  int count = 0;
  for (const auto& log : LogsIn(traces)) {
    for (const LoggedRecord& record : ParseLog(ReadText(log)))
      count += record.payload.find("\"wait_given_up\": \"" + why + "\"") != std::string::npos;
  }
  return count;
}

// Two processes, three processes, and two of which one has two threads in the ring, in every order
// of keys. `make_cache` is called in each process, with a directory of that ring's.
inline void CheckRings(
    const std::function<std::unique_ptr<CompileCache>(const std::string&)>& make_cache) {
  for (const std::vector<size_t>& per_process :
       {std::vector<size_t>{1, 1}, std::vector<size_t>{1, 1, 1}, std::vector<size_t>{2, 1}}) {
    size_t size = 0;
    for (const size_t count : per_process) size += count;
    std::vector<std::string> keys;
    for (size_t i = 0; i < size; ++i) keys.push_back(KeyOf(std::to_string(i)).text);
    std::sort(keys.begin(), keys.end());
    do {
      const TemporaryDirectory directory;
      const std::string traces = directory.string() + "/traces";
      const int compiled = RunRing(
          keys, per_process, [&] { return make_cache(directory.string()); }, traces);
      INFO(size << " compiles in " << per_process.size() << " processes");
      // Each once, and a key again for each lookup that gave up waiting, of which there is one.
      CHECK(compiled == static_cast<int>(size) + GivenUpCount(traces, "nested"));
      CHECK(GivenUpCount(traces, "nested") >= 1);
      CHECK(GivenUpCount(traces, "nested") <= 2);
      CHECK(GivenUpCount(traces, "max_wait") == 0);
    } while (std::next_permutation(keys.begin(), keys.end()));
  }
}

}  // namespace libtrace::testing
