#include "inputs/join/kernel_match.h"

#include "inputs/common/generated_code.h"
#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

using Names = std::vector<std::string_view>;
using Matches = std::vector<std::optional<std::size_t>>;
constexpr std::nullopt_t kNone = std::nullopt;

}  // namespace

TEST_CASE("A slice is a run of the kernel that the code calls", "[kernel_match]") {
  CHECK(IsRunOf("graph_3_cpp_fused_add_0", "cpp_fused_add_0"));
  CHECK(IsRunOf("cpp_fused_add_0", "cpp_fused_add_0"));
  CHECK(IsRunOf("triton_poi_fused_0", "triton_poi_fused_0"));
  CHECK(IsRunOf("aten::addmm", "extern_kernels.addmm"));
  CHECK(IsRunOf("aten::randint", "aten.randint.low_out"));
  CHECK(IsRunOf("aten::f", "torch.ops.aten.f.default"));
  CHECK(IsRunOf("_c10d_functional::all_reduce_", "torch.ops._c10d_functional.all_reduce_.default"));
  CHECK(IsRunOf("aoti_torch_cpu_addmm_out", "aoti_torch_cpu_addmm_out"));
  CHECK(!IsRunOf("aten::mm", "extern_kernels.addmm"));
  CHECK(!IsRunOf("addmm", "extern_kernels.addmm"));
  CHECK(!IsRunOf("graph_3_cpp_fused_add_1", "cpp_fused_add_0"));
  CHECK(!IsRunOf("aten::f", "torch.ops"));
}

TEST_CASE("By order: every kernel in turn, allocations between them", "[kernel_match]") {
  const Names kernels = {"extern_kernels.mm", "cpp_fused_a_0", "extern_kernels.mm"};
  CHECK(MatchInOrder({"aten::empty", "aten::mm", "graph_0_cpp_fused_a_0", "aten::mm"}, kernels) ==
        Matches{kNone, 0, 1, 2});
  CHECK(MatchInOrder({"aten::mm", "graph_0_cpp_fused_a_0"}, kernels) == kNone);  // one is missing
  CHECK(MatchInOrder({"graph_0_cpp_fused_a_0", "aten::mm", "aten::mm"}, kernels) == kNone);
  CHECK(MatchInOrder({"aten::mm", "graph_0_cpp_fused_b_1", "graph_0_cpp_fused_a_0", "aten::mm"},
                     kernels) == kNone);
  CHECK(MatchInOrder({"aten::mm"}, {}) == kNone);
}

TEST_CASE("By name: only names that ran as often as the code calls them", "[kernel_match]") {
  const Names kernels = {"cpp_fused_a_0", "cpp_fused_b_1", "cpp_fused_a_0"};
  CHECK(MatchByName({"graph_1_cpp_fused_b_1"}, kernels) == Matches{1});
  CHECK(MatchByName({"graph_1_cpp_fused_a_0", "graph_1_cpp_fused_a_0"}, kernels) == Matches{0, 2});
  CHECK(MatchByName({"graph_1_cpp_fused_a_0"}, kernels) == Matches{kNone});
  CHECK(MatchByName({"aten::mm", "graph_1_cpp_fused_c_0"}, kernels) == Matches{kNone, kNone});
}

TEST_CASE("With gaps: a run that can be one kernel only gets it", "[kernel_match]") {
  const Names kernels = {"extern_kernels.mm",    "cpp_fused_a_0", "extern_kernels.mm",
                         "extern_kernels.addmm", "cpp_fused_b_1", "extern_kernels.mm"};
  CHECK(MatchWithGaps({"aten::mm", "aten::empty", "aten::mm", "aten::addmm", "aten::mm"},
                      kernels) == Matches{0, kNone, 2, 3, 5});
  CHECK(MatchWithGaps({"aten::mm", "aten::addmm"}, kernels) == Matches{kNone, 3});
  CHECK(MatchWithGaps({"graph_0_cpp_fused_a_0", "aten::mm", "graph_0_cpp_fused_b_1"}, kernels) ==
        Matches{1, 2, 4});
  CHECK(MatchWithGaps({"aten::empty"}, kernels) == Matches{kNone});
  CHECK(MatchWithGaps({"graph_0_cpp_fused_b_1", "aten::addmm"}, kernels) ==
        kNone);  // another order
  CHECK(MatchWithGaps({"graph_0_cpp_fused_c_0"}, kernels) == kNone);
  CHECK(AreRuns({"aten::mm", "aten::empty", "aten::mm"}, kernels) ==
        std::vector<bool>{true, false, true});
}

TEST_CASE("By path: the only call, or as many runs as calls", "[kernel_match]") {
  const Names kernels = {"user_0", "triton_a", "user_0", "extern_kernels.mm"};
  CHECK(MatchByPath({"triton_a", "", "triton_a"}, kernels) == Matches{1, kNone, 1});
  CHECK(MatchByPath({"user_0", "user_0"}, kernels) == Matches{0, 2});
  CHECK(MatchByPath({"user_0"}, kernels) == Matches{kNone});
  CHECK(MatchByPath({"other"}, kernels) == Matches{kNone});
}

TEST_CASE("Files of kernels are named above their definitions", "[kernel_match]") {
  const auto names = KernelPaths(
      "# kernel path: /a/xy/cxy.py\r\n# Source Nodes: []\r\n\r\nuser_0 = async_compile.triton('u', "
      "'''\nx = 1\n''')\n# kernel path: /a/none.py\nbuf = 1\nt = async_compile.triton('t', '')\n"
      "# kernel path: /a/last.py");
  REQUIRE(names.size() == 1);
  CHECK(names.at("/a/xy/cxy.py") == "user_0");
  CHECK(BaseName("/a/xy/cxy.py") == "cxy.py");
  CHECK(BaseName("cxy.py") == "cxy.py");
}

TEST_CASE("A replayed device graph: the next kernel of that name", "[kernel_match]") {
  const Names kernels = {"triton_a", "extern_kernels.mm", "triton_b", "triton_a"};
  CHECK(MatchReplay({"triton_a", "gemm", "triton_b", "triton_a"}, kernels) ==
        Matches{0, kNone, 2, 3});
  CHECK(MatchReplay({"triton_b", "triton_a", "triton_a"}, kernels) == Matches{2, 3, kNone});
  CHECK(MatchReplay({"triton_a"}, {}) == Matches{kNone});
}
