#include "artifacts/common/graph/code_summary.h"

#include <string>
#include <vector>

#include "artifacts/common/graph/code_tensors.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("Debug handles are split off kernel names", "[code_summary]") {
  CHECK(SplitDebugHandle("extern_kernels.mm:12").first == "extern_kernels.mm");
  CHECK(SplitDebugHandle("extern_kernels.mm:12").second == 12);
  CHECK_FALSE(SplitDebugHandle("a::b").second);
  CHECK_FALSE(SplitDebugHandle("a:").second);
  CHECK_FALSE(SplitDebugHandle("a:-1").second);
  CHECK_FALSE(SplitDebugHandle("a:99999999999999999999").second);
  CHECK(SplitDebugHandle("a:1x").first == "a:1x");
}

TEST_CASE("Kernels of a Triton wrapper have nodes from the comments of their definition and calls",
          "[code_summary]") {
  const CodeSummary summary = SummarizeCode(
      "# AOT ID: ['5_inference']\n"
      "# kernel path: /tmp/x.py\n"
      "# Topologically Sorted Source Nodes: [h], Original ATen: [aten.gelu]\n"
      "# Source node to ATen node mapping:\n"
      "#   h => mul, mul_1\n"
      "# Graph fragment:\n"
      "#   %arg0_1 : Tensor \"f32[4]\" = PlaceHolder[target=arg0_1]\n"
      "#   %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, "
      "0.5), kwargs = {})\n"
      "#   return %mul\n"
      "triton_poi_0 = async_compile.triton('triton_poi_0', '''\n"
      "extern_kernels.mm(not, code)\n"
      "''', device_str='cuda')\n"
      "def call(args):\n"
      "    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]\n"
      "    extern_kernels.addmm(a, b)\n"
      "    # Topologically Sorted Source Nodes: [view], Original ATen: [aten.view]\n"
      "    buf1 = reinterpret_tensor(buf0, (4, ), (1, ), 0)\n"
      "    # Topologically Sorted Source Nodes: [h2], Original ATen: [aten.gelu]\n"
      "    stream0 = get_raw_stream(0)\n"
      "    triton_poi_0.run(buf0, 16, stream=stream0)\n"
      "    triton_poi_0.run(buf1, 16, stream=stream0)\n");
  CHECK(summary.aot_id == "5_inference");
  REQUIRE(summary.kernels.size() == 3);
  CHECK(summary.kernels[0].name == "extern_kernels.addmm");
  CHECK(summary.kernels[0].source_nodes == Names{"linear"});
  CHECK(summary.kernels[0].line == 15);
  CHECK(summary.kernels[1].name == "triton_poi_0");
  CHECK(summary.kernels[1].source_nodes == Names{"h2"});
  CHECK(summary.kernels[1].post_grad_nodes == Names{"mul"});
  CHECK(summary.kernels[1].line == 20);
  CHECK(summary.kernels[2].source_nodes.empty());
  CHECK(summary.kernels[2].post_grad_nodes.empty());
  REQUIRE(summary.node_mapping.size() == 2);
  CHECK(summary.node_mapping[1] == std::pair<std::string, std::string>("h", "mul_1"));
}

TEST_CASE("A handle belongs to the call below it; kernels never called have no line",
          "[code_summary]") {
  const CodeSummary summary = SummarizeCode(
      "unused = async_compile.cpp_pybinding([], '''\n''')\n"
      "# [Provenance debug handles] triton_a:3\n"
      "stream0 = get_raw_stream(0)\n"
      "triton_a.run(x)\n"
      "    // [Provenance debug handles] aoti_torch_cuda_mm_out:4\n"
      "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mm_out(x));\n"
      "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(x));\n"
      "    call_triton_b(x);\n"
      "# [Provenance debug handles] lost:5\n"
      "extern_kernels.mm(x)\n");
  REQUIRE(summary.kernels.size() == 6);
  CHECK(summary.kernels[0].handle == 3);
  CHECK(summary.kernels[0].line == 5);
  CHECK(summary.kernels[1].name == "aoti_torch_cuda_mm_out");
  CHECK(summary.kernels[1].line == 7);
  CHECK(summary.kernels[2].name == "triton_b");
  CHECK(summary.kernels[3].name == "lost");
  CHECK(summary.kernels[3].line == 0);
  CHECK(summary.kernels[4].name == "extern_kernels.mm");
  CHECK(summary.kernels[5].name == "unused");
  CHECK(summary.kernels[5].line == 0);
}

TEST_CASE("Damaged code is no reason to fail", "[code_summary]") {
  CHECK(SummarizeCode("").kernels.empty());
  CHECK(SummarizeCode("# Topologically Sorted Source Nodes: [").kernels.empty());
  CHECK(SummarizeCode("x = async_compile.triton('x', '''\nnever closed").kernels.size() == 1);
  CHECK(SummarizeCode("torch.ops._c10d_functional.all_reduce_.default(").collectives.size() == 1);
  CHECK(SummarizeCode("torch.ops._c10d_functional.all_reduce_.default(a, '")
            .collectives[0]
            .group_name.empty());
  CHECK(SummarizeCode("torch.ops._c10d_functional.wait_tensor.default(a)").collectives[0].is_wait);
}

TEST_CASE("Arguments are split at the outermost level", "[code_tensors]") {
  std::size_t length = 0;
  const auto parts = SplitArguments("a, (b, c), 'd, )e', [f]) rest", &length);
  REQUIRE(parts.size() == 4);
  CHECK(parts[1] == "(b, c)");
  CHECK(parts[2] == "'d, )e'");
  CHECK(length == 23);
  CHECK(SplitArguments("64, )").size() == 1);
  CHECK(SplitArguments("", &length).empty());
  CHECK(length == std::string_view::npos);
  CHECK(SplitArguments("a\\").size() == 1);
}

TEST_CASE("A summary is limited, whatever the code repeats", "[code_summary]") {
  std::string calls;
  for (int i = 0; i < 200'000; ++i) calls += "    cpp_fused_" + std::to_string(i) + "(buf0)\n";
  const CodeSummary many = SummarizeCode(calls);
  CHECK(many.is_cut);
  CHECK(many.kernels.size() > 50'000);
  CHECK(many.kernels.size() < 200'000);
  CHECK(many.kernels.back().line == static_cast<std::int64_t>(many.kernels.size()));
  // One long name for each of many nodes.
  std::string mapping =
      "# Source node to ATen node mapping:\n#   " + std::string(100'000, 'a') + " => b";
  for (int i = 0; i < 10'000; ++i) mapping += ", b";
  CHECK(SummarizeCode(mapping).is_cut);
  // Awaited calls of kernels that were left out.
  CHECK(SummarizeCode(mapping + "\n# [Provenance debug handles] cpp_fused_0:1\n" + calls).is_cut);
  CHECK_FALSE(SummarizeCode(calls.substr(0, 100'000)).is_cut);
}

TEST_CASE("Shapes are JSON", "[code_tensors]") {
  CHECK(ShapeJson("(8, s0*2)") == "[8, \"s0*2\"]");
  CHECK(ShapeJson("()") == "[]");
  CHECK(ShapeJson("(64, )") == "[64]");
  CHECK(ShapeJson("('\"', \\)") == "[\"'\\\"'\", \"\\\\\"]");
  CHECK(ShapeJson("x").empty());
  CHECK(ShapeJson("").empty());
}

}  // namespace
}  // namespace tlparse
