// What the kernels of a package read and write, from its generated code.
#include "torch/package_kernels.h"

#include <string>
#include <vector>

#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

// As PyTorch 2.14 wrote it: from the trace of the AOTInductor example.
std::string RecordedCode() {
  for (const auto& log : testing::LogsIn(TRACEKIT_SOURCE_DIR "/fixtures/logs/libtrace_aoti")) {
    const auto record = testing::FindRecord(testing::ParseLog(testing::ReadText(log)),
                                            "\"inductor_aot_wrapper_code\"");
    if (record) return record->payload;
  }
  return {};
}

constexpr const char* kMadeCode = R"(extern "C"  void  cpp_fused_add_0(const float* in_ptr0,
                       float* out_ptr0);
void AOTInductorModel::run_impl(
    static constexpr int64_t int_array_0[] = {4L, 8L};
    static constexpr int64_t int_array_1[] = {8L, 1L};
    static constexpr int64_t int_array_2[] = {32L, };
    static constexpr int64_t int_array_3[] = {1L, };
    if (is_checked()) { assert_size_stride(arg0_1, {4L, 8L}, {8L, 1L}, "input"); }
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    cpp_fused_add_0((const float*)(arg0_1.data_ptr()), (float*)(buf0.data_ptr()));
)";
constexpr const char* kCallAgain =
    "    cpp_fused_add_0((const float*)(arg0_1.data_ptr()), (float*)(buf1.data_ptr()));\n";
constexpr const char* kSecondBuffer =
    "    auto buf1 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf0, 1, "
    "int_array_2, int_array_3, 0L));  // reuse\n";

// How many tensors each call of the kernel `name` is known to write.
std::vector<size_t> Outputs(const FusedOps& calls, const std::string& name = "cpp_fused_add_0") {
  std::vector<size_t> counts;
  const auto found = calls.find(name);
  if (found == calls.end()) return counts;
  for (const FusedOp& call : found->second) counts.push_back(call.outputs.size());
  return counts;
}
using Counts = std::vector<size_t>;

TEST_CASE("package kernels: outputs, bytes and FLOPs, from recorded code") {
  const std::vector<PackageKernel> nodes = {
      {"cpp_fused_add_mul_relu_sigmoid_0:2", {}, {"relu", "sigmoid", "mul", "add"}, {}}};
  const FusedOps calls = PackageKernelCalls(RecordedCode(), "", nodes);
  REQUIRE(calls.size() == 2);
  REQUIRE(Outputs(calls, "cpp_fused_add_mul_relu_sigmoid_0") == Counts{2});
  const FusedOp& first = calls.at("cpp_fused_add_mul_relu_sigmoid_0")[0];
  CHECK(first.outputs[0].shape == std::vector<int64_t>{4, 32});
  CHECK(first.outputs[0].stride == std::vector<int64_t>{32, 1});
  CHECK(first.outputs[0].dtype == "float32");
  CHECK(first.outputs[0].device == "cpu");
  CHECK(first.outputs[1].shape == std::vector<int64_t>{8});
  CHECK(first.cost.size_bytes == 4 * (2 * 4 * 32 + 8));  // one is read and written
  CHECK(first.cost.flops == 4 * 32 * (10 + 3));          // a sigmoid counts as ten
  const std::string softmax = "cpp_fused__softmax_abs_all_amax_eq_mul_ne_sub_tanh_1";
  REQUIRE(Outputs(calls, softmax) == Counts{6});
  const FusedOp& second = calls.at(softmax)[0];
  CHECK(second.outputs[1].dtype == "bool");
  CHECK(second.outputs[5].shape == std::vector<int64_t>{4, 8});
  CHECK(second.cost.flops == 0);  // its nodes are not known
}

TEST_CASE("package kernels: inputs, views, several calls") {
  const std::string made = kMadeCode;
  const FusedOps calls = PackageKernelCalls(made, "", {});
  REQUIRE(Outputs(calls) == Counts{1});
  CHECK(calls.at("cpp_fused_add_0")[0].cost.size_bytes == 4 * (32 + 32));
  const std::string same = "    auto buf1 = std::move(buf0);  // reuse\n";
  CHECK(Outputs(PackageKernelCalls(made + same + kCallAgain, "", {})) == Counts{1});
  const FusedOps different = PackageKernelCalls(made + kSecondBuffer + kCallAgain, "", {});
  REQUIRE(Outputs(different) == Counts{1, 1});
  CHECK(different.at("cpp_fused_add_0")[1].outputs[0].shape == std::vector<int64_t>{32});
  // Which of them runs is not known here.
  for (const char* before :
       {"    if (cond) {\n", "    while (1) {\n", "    for (int i = 0; i < n; ++i) {\n",
        "} // AOTInductorModel::run_impl\nvoid subgraph_0(\n"}) {
    CHECK(PackageKernelCalls(made + kSecondBuffer + before + kCallAgain, "", {}).empty());
    CHECK(Outputs(PackageKernelCalls(made + same + before + kCallAgain, "", {})) == Counts{1});
  }
}

TEST_CASE("package kernels: what is not known is left out") {
  const std::string made = kMadeCode;
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string text = made;
    text.replace(text.find(part), part.size(), other);
    return Outputs(PackageKernelCalls(text, "", {}));
  };
  CHECK(with("{4L, 8L};", "{s27, 8L};") == Counts{0});  // a dynamic size
  CHECK(with("assert_size_stride(arg0_1", "nothing(arg0_1") == Counts{0});
  CHECK(with("aoti_torch_empty_strided", "alloc_from_pool") == Counts{0});
  CHECK(with("dtype_float32", "dtype_unheard_of") == Counts{0});
  CHECK(with("(arg0_1.data_ptr())", "(arg0_1)") == Counts{0});
  CHECK(with("cpp_fused_add_0(const", "cpp_fused_add_9(const").empty());
  CHECK(Outputs(PackageKernelCalls(made, "", {{"cpp_fused_add_0:1", {}, {"addmm"}, {}}})) ==
        Counts{0});
}

constexpr const char* kInformation = R"({
  "aoti_torch_cpu_addmm_out:10": {"post_grad_nodes": ["addmm_1"], "input_shapes": [[8], [4, 32], [32, 8]],
    "input_dtypes": ["torch.float32", "torch.float32", "torch.float32"],
    "output_shape": [4, 8], "output_dtype": "torch.float32"},
  "aoti_torch_cpu_addmm_out:9": {"input_shapes": [[32], [4, 16], [16, 32]],
    "input_dtypes": ["torch.float32", "torch.float32", "torch.float32"],
    "output_shape": [4, 32], "output_dtype": "torch.float32"},
  "aoti_torch_cpu_sort:2": {"input_shapes": [["s27", 8]], "input_dtypes": ["torch.bool"],
    "output_shape": [4, 8], "output_dtype": "torch.bool"},
  "aoti_torch_cpu_mkldnn__linear_pointwise:3": {"input_shapes": [[8]], "input_dtypes": ["torch.float32"],
    "output_shape": [8], "output_dtype": "torch.float32"},
  "cpp_fused_add_0:1": {"extern_semantic_key": null}, "user:4": 5})";

TEST_CASE("package kernels: ops that the code calls, in the order of their handles") {
  const FusedOps calls = PackageKernelCalls(kMadeCode, kInformation, {});
  REQUIRE(Outputs(calls, "aoti_torch_cpu_addmm_out") == Counts{1, 1});
  const auto& products = calls.at("aoti_torch_cpu_addmm_out");
  CHECK(products[0].outputs[0].shape == std::vector<int64_t>{4, 32});
  CHECK(products[0].outputs[0].device == "cpu");
  CHECK(products[0].cost.flops == 2 * 4 * 32 * 16 + 4 * 32);
  CHECK(products[1].outputs[0].shape == std::vector<int64_t>{4, 8});
  CHECK(products[1].cost.size_bytes == 4 * (8 + 4 * 32 + 32 * 8 + 4 * 8));
  CHECK(Outputs(calls, "aoti_torch_cpu_sort") == Counts{0});
  CHECK(Outputs(calls, "aoti_torch_cpu_mkldnn__linear_pointwise") == Counts{0});
  CHECK(Outputs(calls) == Counts{1});
  CHECK(calls.count("user") == 0);
}

TEST_CASE("package kernels: text that is cut off or damaged does no harm") {
  const std::string made = std::string(kMadeCode) + kSecondBuffer + kCallAgain;
  const std::string information = kInformation;
  for (size_t at = 0; at < made.size(); ++at) {
    CHECK(PackageKernelCalls(made.substr(0, at), information.substr(0, at), {}).size() <= 5);
    for (const char c : {'(', ')', '{', '\n', '\0'}) {
      std::string damaged = made;
      damaged[at] = c;
      CHECK(PackageKernelCalls(damaged, "", {}).size() <= 1);
    }
  }
}

}  // namespace
}  // namespace libtrace
