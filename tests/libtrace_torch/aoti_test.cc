// AOTInductor packages: an observer beside a loader of the program's, and the loader's options. Run by
// test_aoti.py, which has PyTorch compile the package (LIBTRACE_TEST_PACKAGE).
#include "libtrace/torch/aotinductor.h"

#if LIBTRACE_HAS_AOTINDUCTOR
#include <ATen/ops/linspace.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "torch/compat.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::PayloadsOf;
using Loader = torch::inductor::AOTIModelPackageLoader;

std::string Package() {
  const char* const path = std::getenv("LIBTRACE_TEST_PACKAGE");
  REQUIRE(path != nullptr);
  return path;
}
at::Tensor Input() { return at::linspace(-1, 1, 4 * 16).reshape({4, 16}); }

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("aoti: an observer records the runs of a loader that the program made", "[.aoti]") {
  Loader loader(Package());
  const at::Tensor expected = loader.run({Input()})[0];
  MemoryTrace trace;
  auto executions = std::make_shared<GraphExecutionOrder>();
  {
    AotiObserver observer(loader, Package(),
                          {.name = "classifier", .executions = executions, .digest_every = 2});
    for (int run = 0; run < 3; ++run) {
      AotiObserver::Call call(observer);
      const std::vector<at::Tensor> outputs = loader.run({Input()});
      call.Returned(outputs);
      CHECK(outputs[0].equal(expected));
    }
  }
  executions->Emit();
  const auto records = trace.records();
  CHECK(Contains(PayloadsOf(records, "libtrace_package"), "\"kind\": \"aotinductor\""));
  CHECK(Contains(PayloadsOf(records, "libtrace_model_load"), "\"state\": \"loaded\""));
  const std::string tensors = PayloadsOf(records, "inductor_runtime_and_tensor_meta");
  CHECK(CountOf(tensors, "\"name\": \"cpp_fused_") == 2);
  CHECK(CountOf(PayloadsOf(records, "libtrace_measured_runtime"), "\"name\": \"cpp_fused_") == 2);
  const std::string digests = PayloadsOf(records, "libtrace_run_digest");
  CHECK(CountOf(digests, "\"kind\": \"output\"") == 2);
  CHECK(Contains(digests, "\"call\": 2"));
  CHECK(CountOf(PayloadsOf(records, "graph_execution"), "\"compile_id\"") == 3);
  for (const auto& record : records) {
    INFO(record.prefix << record.envelope);
    CHECK(
        (Contains(record.prefix, "aoti_test.cc:") || Contains(record.prefix, "record_writer.cc:")));
  }
}

TEST_CASE("aoti: while tracing is off an observer does nothing", "[.aoti]") {
  Stop();
  Loader loader(Package());
  AotiObserver observer(loader, Package());
  const AotiObserver::Call call(observer);
  CHECK(loader.run({Input()}).size() == 1);
}

TEST_CASE("aoti: a model with the options of the loader", "[.aoti]") {
  const AotiOptions options{
      .name = "classifier", .run_single_threaded = false, .num_runners = 2, .device_index = -1};
  MemoryTrace trace;
#if LIBTRACE_TORCH < 207
  CHECK_THROWS_AS(AotiModel(Package(), options), std::invalid_argument);
  CHECK(Contains(trace.text(), "\"fail_type\": \"std::invalid_argument\""));
#else
  AotiModel model(Package(), options);
  const at::Tensor expected = model.Run({Input()})[0];
  std::vector<std::thread> threads;
  std::vector<int> equal(2);
  for (int& is_equal : equal) {
    threads.emplace_back([&] {
      for (int run = 0; run < 20; ++run)
        is_equal += model.Run({Input()}, nullptr)[0].equal(expected) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(equal == std::vector<int>{20, 20});
  CHECK(model.loader().run({Input()})[0].equal(expected));
  AotiModel single(Package(), {.run_single_threaded = true});
  CHECK(single.Run({Input()})[0].equal(expected));
#endif
}

}  // namespace
}  // namespace libtrace
#endif
