// Forked children of a program whose threads are inside the library.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "libtrace/scope.h"
#include "libtrace/torch/collectives.h"
#include "libtrace/torch/cost_model.h"
#include "libtrace/torch/loaded_models.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/torchscript.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "torch/collective_entries.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;

// Whether a child that runs `function` ends, and the function returns true there.
template <class Function>
bool IsTrueInChild(const Function& function) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs dies of it
    _exit(function() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

// Threads that do something again and again until the object goes away. Each, and this thread, has
// done it once when the object is made: the first op of a thread takes a lock of libtorch's.
class Busy {
 public:
  template <class Function>
  Busy(int count, const Function& function) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, function] {
        function();
        ++ready_count_;
        while (!is_done_) function();
      });
    }
    function();
    while (ready_count_ < count) std::this_thread::yield();
  }
  ~Busy() {
    is_done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> is_done_{false};
  std::atomic<int> ready_count_{0};
  std::vector<std::thread> threads_;
};

TEST_CASE("fork: a child loads the model that a thread of its parent is loading") {
  LoadedModels models;
  std::atomic<bool> is_loading{false}, may_end{false};
  bool is_hit = false;
  const auto model = [] { return LoadedModels::Model{std::make_shared<int>(1), 1}; };
  models.GetOrLoad("held", model, &is_hit);
  std::thread loader([&] {
    const auto slowly = [&] {
      is_loading = true;
      while (!may_end) std::this_thread::yield();
      return model();
    };
    bool is_found = false;
    models.GetOrLoad("slow", slowly, &is_found);
  });
  while (!is_loading) std::this_thread::yield();
  CHECK(IsTrueInChild([&] {
    models.GetOrLoad("slow", model, &is_hit);
    return !is_hit && models.stats().load_count == 1;
  }));
  may_end = true;
  loader.join();
  models.GetOrLoad("held", model, &is_hit);
  CHECK(is_hit);
}

// Exit status of a process that forks `delay` after another thread began to measure: 0 if its child
// knows what was measured, 1 if that hung or was measured nonsense; 2 if the measurement was over
// before the fork.
int ForkWhileMeasuring(std::chrono::milliseconds delay) {
  // The first ops of a process and of a thread take locks of libtorch's.
  const auto warm_up = [] { at::mm(at::ones({4, 4}), at::ones({4, 4})).add(1).clone(); };
  // Threads of OpenMP's, which the child does not have.
  at::ones({4 << 20}).add(1);
  std::atomic<bool> is_begun{false}, is_done{false};
  warm_up();
  std::thread measuring([&] {
    warm_up();
    is_begun = true;
    MeasuredRoofline();
    is_done = true;
  });
  while (!is_begun) std::this_thread::yield();
  std::this_thread::sleep_for(delay);
  const bool was_measuring = !is_done;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs dies of it
    const Roofline& roofline = MeasuredRoofline();
    const bool is_right = roofline.flops_per_s > 1e8 && roofline.bytes_per_s > 1e8 &&
                          roofline.op_overhead_ns > 10 && MeasuredRoofline("cpu") == &roofline;
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  measuring.join();
  return status != 0 ? 1 : was_measuring ? 0 : 2;
}

TEST_CASE("fork: a child has the roofline that a thread of its parent was measuring") {
  // In a program of its own, in which no other test has measured.
  const pid_t program = fork();
  if (program == 0) {
    setenv("OMP_NUM_THREADS", "2", 1);
    execl("/proc/self/exe", "libtrace_torch_test", "[.measuring]", nullptr);
    _exit(9);
  }
  int status = 0;
  REQUIRE(waitpid(program, &status, 0) == program);
  CHECK(status == 0);
}

TEST_CASE("fork: children while a thread measures the roofline", "[.measuring]") {
  int during_count = 0;
  // The times lie closer together where the measurement begins.
  for (int delay_ms = 0; delay_ms < 60; delay_ms += 1 + delay_ms / 4) {
    const pid_t process = fork();  // has not measured yet
    if (process == 0) _exit(ForkWhileMeasuring(std::chrono::milliseconds(delay_ms)));
    int status = 0;
    REQUIRE(waitpid(process, &status, 0) == process);
    INFO("after " << delay_ms << " ms");
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) != 1);
    during_count += WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  CHECK(during_count > 3);
}

TEST_CASE("fork: ops of a child do not wait for those of its parent's threads") {
  const MemoryTrace trace;
  MeasuredRoofline();  // once, and not in each child
  OpObserverOptions options;
  options.all_threads = true;
  const OpObserver observer(options);
  const at::Tensor one = at::ones({2});
  const Busy threads(3, [one] { at::add(one, one); });
  for (int i = 0; i < 40; ++i) {
    REQUIRE(IsTrueInChild([&] {
      for (int op = 0; op < 10; ++op) at::add(one, one);
      OpObserver own(options);
      for (int op = 0; op < 10; ++op) at::add(one, one);
      own.Stop();
      const auto ops = own.Measured();
      return ops.size() == 1 && ops[0].count == 10;
    }));
  }
}

TEST_CASE("fork: a child runs a model that threads of its parent run") {
  const MemoryTrace trace;
  torch::jit::Module module("Net");
  DefineMethods(module, "def forward(self, x):\n    return x + 1\n", "net.py");
  TorchScriptOptions options;
  options.observe_ops = false;
  options.max_specializations = 64;
  TorchScriptModel model(module, options);
  std::atomic<int64_t> size{0};
  const auto run = [&] { model.Run({at::ones({size++ % 64 + 1})}); };
  for (int i = 0; i < 64; ++i) run();  // compiling takes locks of libtorch's
  const Busy threads(3, run);
  for (int i = 0; i < 40; ++i) {
    REQUIRE(IsTrueInChild([&] {
      model.Run({at::ones({2})});
      model.Run({at::ones({2})});
      return model.specialization_count() == 1;
    }));
  }
}

TEST_CASE("fork: a child's calls of an observed module do not wait for those of other threads") {
  const MemoryTrace trace;
  torch::jit::Module module("Net");
  DefineMethods(module, "def forward(self, x):\n    return x + 1\n", "net.py");
  TorchScriptOptions options;
  options.max_specializations =
      0;  // else it asks for the optimised graph, under a lock of libtorch's
  ModuleObserver observer(module, options);
  const std::vector<c10::IValue> inputs = {at::ones({2})};
  const Busy threads(3, [&] { const ModuleObserver::Call call(observer, inputs); });
  for (int i = 0; i < 40; ++i) {
    REQUIRE(IsTrueInChild([&] {
      for (int call = 0; call < 2; ++call) const ModuleObserver::Call one(observer, inputs);
      return true;
    }));
  }
}

TEST_CASE("fork: what its parent counted and issued is not in the trace of a child") {
  const MemoryTrace trace;
  const at::Tensor one = at::ones({2});
  OpObserver ops;
  at::add(one, one);
  CollectiveLogOptions kept;
  kept.writes_as_issued = false;
  CollectiveLog log(kept);
  IssuedCollective collective;
  collective.op = "barrier";
  log.impl()->Append(collective, {}, {}, false);
  CHECK(IsTrueInChild([&] {
    ops.Emit();
    log.Emit();
    log.impl()->Append(collective, {}, {}, false);
    log.EmitSchedule();
    return GetStats().record_count == 0 && log.size() == 0 && ops.Measured().empty();
  }));
  CHECK(log.size() == 1);
  CHECK(ops.Measured().size() == 1);
}

}  // namespace
}  // namespace libtrace
