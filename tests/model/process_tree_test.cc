// Children told from ranks and from later starts of a rank.
#include "model/process_tree.h"

#include "tests/catch2.h"
#include "tests/model/time.h"

namespace tlparse {
namespace {

TreeProcess Process(std::int64_t pid, std::optional<std::int64_t> rank, double start_s,
                    double end_s) {
  TreeProcess one;
  one.id = pid;
  one.pid = pid;
  one.rank = rank;
  one.start_us = static_cast<std::int64_t>(start_s * kSecond);
  one.end_us = static_cast<std::int64_t>(end_s * kSecond);
  one.first_string_number = 0;
  one.first_frame_id = 0;
  return one;
}

TreeProcess Worker(std::int64_t pid, std::optional<std::int64_t> rank, double start_s) {
  TreeProcess one = Process(pid, rank, start_s, start_s + 1);
  one.origin = ProcessOrigin::kLoaderWorker;
  return one;
}

// "kind of parent" by process; "-": no child.
std::vector<std::string> Tree(std::vector<TreeProcess> processes) {
  FindChildren(processes);
  std::vector<std::string> texts;
  for (const TreeProcess& one : processes) {
    CHECK((one.kind == ChildKind::kNone) == one.evidence.empty());
    texts.push_back(one.kind == ChildKind::kNone
                        ? "-"
                        : std::string(Name(one.kind)) + " of " + std::to_string(one.parent_id));
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("process tree: ranks, and a later start of one, are no children") {
  CHECK(Tree({}) == Texts{});
  CHECK(Tree({Process(10, 0, 0, 9), Process(11, 1, 0, 9), Process(90, 0, 20, 29)}) ==
        Texts{"-", "-", "-"});
}

TEST_CASE("process tree: workers of a loader, also those that compile before their parent") {
  CHECK(Tree({Process(10, 0, 5, 40), Process(11, 1, 5, 40), Worker(20, 0, 2), Worker(21, 1, 50)}) ==
        Texts{"-", "-", "loader_worker of 10", "loader_worker of 11"});
  // The job was started again: each worker belongs to the start that it is nearest to.
  CHECK(Tree({Process(10, 0, 5, 40), Process(100, 0, 205, 240), Worker(20, 0, 44),
              Worker(120, 0, 200)}) ==
        Texts{"-", "-", "loader_worker of 10", "loader_worker of 100"});
  // Those that were spawned have no rank: which rank's they are is not known, unless there is one.
  CHECK(Tree({Process(10, 0, 0, 9), Process(11, 1, 0, 9), Worker(20, {}, 1)}) ==
        Texts{"-", "-", "loader_worker of 0"});
  CHECK(Tree({Process(10, {}, 0, 9), Worker(20, {}, 1)}) == Texts{"-", "loader_worker of 10"});
  // The parent compiles nothing.
  CHECK(Tree({Worker(20, 0, 1), Worker(21, 0, 2)}) ==
        Texts{"loader_worker of 0", "loader_worker of 0"});
}

TEST_CASE("process tree: what was forked goes on from its parent's numbers") {
  TreeProcess child = Process(20, 0, 6, 7);
  child.first_string_number = 7;
  CHECK(Tree({Process(10, 0, 0, 5), child}) == Texts{"-", "forked of 10"});
  child.first_string_number = 0;
  child.first_frame_id = 3;
  CHECK(Tree({Process(10, 0, 0, 5), child}) == Texts{"-", "forked of 10"});
  // A log without its beginning, of a rank that has no other, or none before it.
  CHECK(Tree({Process(10, 1, 0, 5), child}) == Texts{"-", "-"});
  CHECK(Tree({Process(30, 0, 8, 9), child}) == Texts{"-", "-"});
}

TEST_CASE("process tree: multiprocessing.Process starts ranks as well as helpers") {
  TreeProcess one = Process(20, 0, 1, 2), other = Process(21, 1, 1, 2);
  one.origin = other.origin = ProcessOrigin::kMultiprocessing;
  CHECK(Tree({one, other}) == Texts{"-", "-"});
  CHECK(Tree({Process(10, 0, 0, 5), one, other}) == Texts{"-", "forked of 10", "-"});
  one.origin = ProcessOrigin::kRankLauncher;
  CHECK(Tree({Process(10, 0, 0, 5), one}) == Texts{"-", "-"});
}

TEST_CASE("process origin: the innermost start counts") {
  using O = ProcessOrigin;
  const OriginFrame main{"/job/train.py", "<module>"},
      bootstrap{"/usr/lib/python3/multiprocessing/process.py", "_bootstrap"},
      spawn{"/lib/torch/multiprocessing/spawn.py", "_wrap"},
      loader{"/lib/torch/utils/data/_utils/worker.py", "_worker_loop"},
      pool{"/lib/concurrent/futures/process.py", "_process_worker"};
  CHECK(OriginOf({}) == O::kUnknown);
  CHECK(OriginOf({main}) == O::kUnknown);
  CHECK(OriginOf({main, bootstrap, main}) == O::kMultiprocessing);
  CHECK(OriginOf({main, bootstrap, spawn, main}) == O::kRankLauncher);
  CHECK(OriginOf({main, bootstrap, spawn, main, bootstrap, loader, main}) == O::kLoaderWorker);
  CHECK(OriginOf({main, bootstrap, spawn, main, bootstrap, main}) == O::kMultiprocessing);
  CHECK(OriginOf({main, bootstrap, pool, main}) == O::kPoolWorker);
  // A user's function of that name starts nothing.
  CHECK(OriginOf({main, loader}) == O::kUnknown);
}

}  // namespace tlparse
