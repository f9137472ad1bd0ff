#include "libtrace/torch/op_observer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/record_function.h>

#include <atomic>
#include <optional>
#include <thread>

#include "libtrace/sink.h"
#include "libtrace/torch/cost_model.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"

namespace {

struct Traced {
  std::shared_ptr<libtrace::MemorySink> sink = std::make_shared<libtrace::MemorySink>();
  Traced() {
    libtrace::Options options;
    options.sink = sink;
    REQUIRE(libtrace::Start(options));
  }
  ~Traced() { libtrace::Stop(); }
};

libtrace::OpTensor Tensor(const std::vector<int64_t>& shape) {
  uint64_t size_bytes = 4;
  for (const int64_t size : shape) size_bytes *= static_cast<uint64_t>(size);
  return {shape, size_bytes};
}

TEST_CASE("cost: a matrix product counts multiply and add, and every byte once") {
  const std::vector<int64_t> left = {4, 8}, right = {8, 2}, product = {4, 2};
  const auto cost = libtrace::CostOf("aten::mm", std::vector{Tensor(left), Tensor(right)},
                                     std::vector{Tensor(product)}, false);
  CHECK(cost.flops == 2 * 4 * 8 * 2);
  CHECK(cost.size_bytes == 4 * (4 * 8 + 8 * 2 + 4 * 2));
}

TEST_CASE("cost: a convolution, from its weight; a view is free") {
  const std::vector<int64_t> input = {1, 3, 16, 16}, weight = {8, 3, 3, 3}, output = {1, 8, 14, 14};
  const auto cost = libtrace::CostOf("aten::conv2d", std::vector{Tensor(input), Tensor(weight)},
                                     std::vector{Tensor(output)}, false);
  CHECK(cost.flops == 2.0 * (8 * 14 * 14) * (3 * 3 * 3));
  CHECK(libtrace::CostOf("aten::t", std::vector{Tensor(input)}, std::vector{Tensor(input)}, true)
            .size_bytes == 0);
}

TEST_CASE("cost: an op for which there is no formula is not known") {
  const std::vector<int64_t> shape = {4, 8};
  const auto is_known = [&](std::string_view op) {
    return libtrace::CostOf(op, std::vector{Tensor(shape)}, std::vector{Tensor(shape)}, false)
        .is_known;
  };
  for (const char* op : {"aten::randn", "aten::normal_", "aten::sort", "aten::linalg_svd",
                         "aten::fft_fft", "aten::lstm", "aten::convolution_backward",
                         "aten::scaled_dot_product_attention", "acme::twice", "acme::conv"}) {
    INFO(op);
    CHECK_FALSE(is_known(op));
  }
  for (const char* op : {"aten::relu", "aten::add_", "aten::expand", "aten::native_layer_norm",
                         "aten::sum", "relu", "aten::softmax"}) {
    INFO(op);
    CHECK(is_known(op));
  }
}

TEST_CASE("cost: an empty op and an op without tensors have a cost") {
  CHECK(libtrace::CostOf("aten::mm", {}, {}, false).flops == 0);
  const std::vector<int64_t> scalar = {};
  CHECK(libtrace::CostOf("aten::mm", std::vector{Tensor(scalar), Tensor(scalar)},
                         std::vector{Tensor(scalar)}, false)
            .flops == 2);
}

TEST_CASE(
    "observer: outermost ops with their output tensors, in order, calls of one kind together") {
  const Traced traced;
  const at::Tensor x = at::ones({4, 8}), w = at::ones({8, 2});
  libtrace::OpObserver observer;
  for (int i = 0; i < 3; ++i) at::relu(at::mm(x, w));
  at::mm(x.t(), x);
  observer.Emit();

  const auto ops = observer.Runtimes();
  REQUIRE(ops.size() == 4);
  CHECK(ops[0].name == "aten::mm");
  CHECK(ops[1].name == "aten::relu");  // and not the clamp_min that relu calls
  CHECK(ops[2].name == "aten::t");
  CHECK(ops[3].name == "aten::mm_1");
  REQUIRE(ops[0].outputs.size() == 1);
  CHECK(ops[0].outputs[0].shape == std::vector<int64_t>{4, 2});
  CHECK(ops[0].outputs[0].stride == std::vector<int64_t>{2, 1});
  CHECK(ops[0].outputs[0].dtype == "float32");
  CHECK(ops[0].outputs[0].device == "cpu");
  CHECK(ops[2].outputs[0].stride == std::vector<int64_t>{1, 8});
  CHECK(ops[0].estimated_runtime_ns > ops[2].estimated_runtime_ns);

  const auto measured = observer.Measured();
  CHECK(measured[0].count == 3);
  CHECK(measured[3].count == 1);
  CHECK(measured[0].min_ns > 0);
  CHECK(measured[0].total_ns >= measured[0].max_ns);

  const std::string text = traced.sink->text();
  CHECK(text.find("inductor_runtime_and_tensor_meta") != std::string::npos);
  CHECK(text.find("libtrace_measured_runtime") != std::string::npos);
}

TEST_CASE("observer: nested ops on request, nothing after Stop, a limit that counts") {
  const Traced traced;
  const at::Tensor x = at::ones({4, 8});
  libtrace::OpObserver nested({.nested_ops = true});
  at::relu(x);
  nested.Stop();
  at::relu(x);
  CHECK(nested.Runtimes().size() > 1);
  CHECK(nested.Measured()[0].count == 1);

  libtrace::OpObserver limited({.max_ops = 1});
  at::relu(x);
  at::mm(x, x.t());
  limited.Stop();
  CHECK(limited.Runtimes().size() == 1);
  CHECK(limited.lost_count() == 2);
}

TEST_CASE("observer: without a tensor there is no estimate; a fused kernel's are from the caller") {
  const Traced traced;
  auto fused = std::make_shared<libtrace::FusedOps>();
  libtrace::FusedOp& known = (*fused)["graph_0_cpp_fused_add_1"].emplace_back();
  known.outputs = {{.shape = {4}, .stride = {1}, .dtype = "float32", .device = "cpu"}};
  known.cost = {4, 32};
  libtrace::OpObserverOptions options;
  options.fused_ops = fused;
  libtrace::OpObserver observer(options);
  for (const char* name : {"graph_0_cpp_fused_add_1", "graph_0_cpp_fused_mul_2", "graph_of_mine"}) {
    RECORD_FUNCTION(name, std::vector<c10::IValue>());
  }
  observer.Emit();
  const auto ops = observer.Runtimes();
  REQUIRE(ops.size() == 1);
  CHECK(ops[0].name == "cpp_fused_add_1");  // as in the code of the package
  CHECK(ops[0].outputs[0].shape == std::vector<int64_t>{4});
  const auto measured = observer.Measured();
  REQUIRE(measured.size() == 3);
  CHECK(measured[0].estimated_runtime_ns);
  CHECK(measured[1].name == "cpp_fused_mul_2");
  CHECK_FALSE(measured[1].estimated_runtime_ns);
  CHECK(measured[2].name == "graph_of_mine");
}

TEST_CASE("observer: each call of a kernel has the tensors of its place in the code") {
  const Traced traced;
  auto fused = std::make_shared<libtrace::FusedOps>();
  for (const char* name : {"cpp_fused_add_0", "cpp_fused_mul_1"}) {
    for (const int64_t size : {4, 4096}) {
      libtrace::FusedOp& one = (*fused)[name].emplace_back();
      one.outputs = {{.shape = {size}, .stride = {1}, .dtype = "float32", .device = "cpu"}};
      one.cost = {static_cast<double>(size), 8e6 * static_cast<double>(size)};
    }
  }
  libtrace::OpObserverOptions options;
  options.fused_ops = fused;
  libtrace::OpObserver observer(options);
  for (int run = 0; run < 4; ++run) {
    RECORD_FUNCTION("graph_2_cpp_fused_add_0", std::vector<c10::IValue>());
  }
  for (int run = 0; run < 3; ++run) {  // a branch was not taken: which one is not known
    RECORD_FUNCTION("graph_2_cpp_fused_mul_1", std::vector<c10::IValue>());
  }
  observer.Emit();
  const auto ops = observer.Runtimes();
  REQUIRE(ops.size() == 2);
  CHECK(ops[0].name == "cpp_fused_add_0");
  CHECK(ops[0].outputs[0].shape == std::vector<int64_t>{4});
  CHECK(ops[1].name == "cpp_fused_add_0_1");
  CHECK(ops[1].outputs[0].shape == std::vector<int64_t>{4096});
  CHECK(ops[1].estimated_runtime_ns > 2 * ops[0].estimated_runtime_ns);
  CHECK(observer.Measured().size() == 4);
  CHECK(observer.Measured()[1].count == 2);
}

TEST_CASE("observer: one that another thread ends is emitted, and no other one is touched") {
  const Traced traced;
  const at::Tensor one = at::ones({2});
  std::optional<libtrace::OpObserver> observer(std::in_place);
  at::relu(one);
  std::thread([&] {
    libtrace::OpObserver own;
    at::relu(one);
    observer->Emit();
    CHECK(observer->Measured().size() == 1);
    observer.reset();
    at::relu(one);
    own.Stop();
    REQUIRE(own.Measured().size() == 1);
    CHECK(own.Measured()[0].count == 2);
  }).join();
  CHECK(traced.sink->text().find("libtrace_measured_runtime") != std::string::npos);
  at::relu(one);
  libtrace::OpObserver next;  // takes the place of the one that is over
  at::relu(one);
  next.Stop();
  REQUIRE(next.Measured().size() == 1);
  CHECK(next.Measured()[0].count == 1);
}

TEST_CASE("observer: threads run ops while another one ends the observer") {
  const Traced traced;
  const at::Tensor one = at::ones({2});
  for (int round = 0; round < 200; ++round) {
    std::atomic<libtrace::OpObserver*> made = nullptr;
    std::atomic<bool> is_done = false;
    std::thread watched([&] {
      libtrace::OpObserver observer;
      made = &observer;
      while (!is_done) at::relu(one);
    });
    while (made == nullptr) std::this_thread::yield();
    made.load()->Emit();
    CHECK(made.load()->Measured().size() <= 1);
    is_done = true;
    watched.join();
  }
}

TEST_CASE("observer: when tracing is off nothing is watched") {
  libtrace::Stop();
  libtrace::OpObserver observer;
  at::relu(at::ones({2}));
  observer.Emit();
  CHECK(observer.Runtimes().empty());
}

TEST_CASE("roofline: measured, positive, the same each time") {
  const libtrace::Roofline& roofline = libtrace::MeasuredRoofline();
  CHECK(roofline.flops_per_s > 1e8);
  CHECK(roofline.bytes_per_s > 1e8);
  CHECK(roofline.op_overhead_ns > 10);
  CHECK(&libtrace::MeasuredRoofline() == &roofline);
  CHECK(libtrace::MeasuredRoofline("cpu") == &roofline);
  CHECK(libtrace::MeasuredRoofline("meta") == nullptr);
}

}  // namespace
