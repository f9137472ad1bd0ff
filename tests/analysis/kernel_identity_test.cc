#include "facts/contents/kernel_identity.h"

#include "artifacts/common/graph/code_tensors.h"
#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

CodeTensors Shapes() {
  CodeTensors shapes;
  shapes.Note("assert_size_stride(arg0_1, (8, 16), (16, 1))");
  shapes.Note("assert_size_stride(arg1_1, (s77, 16), (16, 1))");
  shapes.Note("buf0 = empty_strided_cuda((8, 16), (16, 1), torch.float32)");
  shapes.Note("buf1 = empty_strided_cuda((8, 4), (4, 1), torch.bfloat16)");
  return shapes;
}

std::string Text(std::string_view kernel, std::string_view line) {
  return IdentityOf(kernel, line, Shapes()).text;
}

}  // namespace

TEST_CASE("A generated kernel: its operations and shapes, whatever its number and order",
          "[kernel_identity]") {
  const std::string expected = "fused_add (128, [8, 16], [8, 16] float32)";
  CHECK(Text("triton_poi_fused_add_0",
             "triton_poi_fused_add_0.run(arg0_1, buf0, 128, stream=stream0)") == expected);
  CHECK(Text("triton_poi_fused_add_3",
             "triton_poi_fused_add_3.run(buf0, arg0_1, 128, grid=grid(128), stream=stream0)") ==
        expected);
  CHECK(Text("triton_red_fused_sum_0",
             "triton_red_fused_sum_0.run(arg0_1, buf0, 128, stream=stream0)") ==
        "fused_sum (128, [8, 16], [8, 16] float32)");
  CHECK(Text("cpp_fused_add_1", "cpp_fused_add_1(arg0_1, buf0)") ==
        "fused_add ([8, 16], [8, 16] float32)");
}

TEST_CASE("An operator: its arguments in their order", "[kernel_identity]") {
  CHECK(
      Text("extern_kernels.mm",
           "extern_kernels.mm(arg0_1, reinterpret_tensor(buf0, (16, 8), (1, 16), 0), out=buf1)") ==
      "extern_kernels.mm ([8, 16], [16, 8] float32, [8, 4] bfloat16)");
  CHECK(Text("torch.ops.aten.sort.stable",
             "buf2 = torch.ops.aten.sort.stable(buf0, stable=False, dim=1)") ==
        "torch.ops.aten.sort.stable ([8, 16] float32, stable=False, dim=1)");
}

TEST_CASE("Sizes that are symbols are some size", "[kernel_identity]") {
  const KernelIdentity one = IdentityOf("triton_poi_fused_add_0",
                                        "triton_poi_fused_add_0.run(arg1_1, buf0, "
                                        "triton_poi_fused_add_0_xnumel, stream=stream0)",
                                        Shapes());
  CHECK(one.has_symbols);
  CHECK(one.text == "fused_add ([\"s\", 16], [8, 16] float32, s)");
  CHECK(Text("triton_poi_fused_add_0",
             "triton_poi_fused_add_0.run(arg1_1, buf0, 16*s77, stream=stream0)") == one.text);
  CHECK(!IdentityOf("cpp_fused_add_1", "cpp_fused_add_1(arg0_1, buf0)", Shapes()).has_symbols);
}

TEST_CASE("What the code does not tell has no identity", "[kernel_identity]") {
  CHECK(Text("cpp_fused_add_1", "cpp_fused_add_1(arg0_1, elsewhere)").empty());
  CHECK(Text("triton_0", "triton_0.run(arg0_1, buf0, stream=stream0)").empty());  // operations
  CHECK(Text("cpp_fused_add_1", "another_0(arg0_1)").empty());
  CHECK(Text("cpp_fused_add_1", "cpp_fused_add_1()").empty());
}
