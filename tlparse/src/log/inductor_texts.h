// Texts of Inductor's generated code, of its profiler marks and of its artifacts that this reader
// searches for. PyTorch may change them with any version: behind each, the versions in whose logs or
// profiles it was seen, or the file of PyTorch 2.14 that writes it where no recording has it.
#pragma once

#include <array>
#include <string_view>

namespace tlparse::inductor {

// Generated code.
inline constexpr std::string_view kDefinition = " = async_compile.";          // 2.6, 2.14
inline constexpr std::string_view kKernelPath = "# kernel path: ";            // codegen/triton.py
inline constexpr std::string_view kSourceNodes = "Source Nodes: [";           // 2.6, 2.14
inline constexpr std::string_view kHandles = " [Provenance debug handles] ";  // 2.14
inline constexpr std::string_view kNodeMapping = " Source node to ATen node mapping:";  // utils.py
inline constexpr std::string_view kGraphFragment = " Graph fragment:";                  // utils.py
inline constexpr std::string_view kCppFused = "cpp_fused_";                             // 2.6, 2.14
inline constexpr std::string_view kCppKernel = "cpp_";                                  // 2.6, 2.14
inline constexpr std::string_view kTritonKernel = "triton_";                            // 2.6, 2.14
inline constexpr std::string_view kExternKernels = "extern_kernels.";                   // 2.6, 2.14
inline constexpr std::string_view kTorchOps = "torch.ops.";                             // 2.6, 2.14
inline constexpr std::string_view kAten = "aten.";                                      // 2.6, 2.14
// C++ wrappers.
inline constexpr std::string_view kCheck = "AOTI_TORCH_ERROR_CODE_CHECK(";  // 2.6, 2.14
inline constexpr std::string_view kLaunch = "launchKernel(kernels.";  // codegen/cpp_wrapper_gpu.py
inline constexpr std::string_view kCallTriton = "call_triton_";       // codegen/cpp_wrapper_gpu.py

// Namespaces of collectives in generated code. 2.6 and 2.14 have the first; the others are those of
// torch/distributed and of earlier versions.
inline constexpr std::array<std::string_view, 5> kCollectiveOps = {
    "torch.ops._c10d_functional.", "torch.ops._c10d_functional_autograd.",
    "torch.ops.c10d_functional.", "torch.ops.c10d.", "torch.ops.symm_mem."};

// Profiles.
inline constexpr std::string_view kGraphCall = "## Call CompiledFxGraph ";  // 2.6, 2.14
inline constexpr std::string_view kGraphCallEnd = " ##";                    // 2.6, 2.14
inline constexpr std::string_view kRegion = "Torch-Compiled Region: ";      // 2.6, 2.14
inline constexpr std::string_view kFunction = "CompiledFunction";           // 2.6, 2.14
inline constexpr std::string_view kBackward = "CompiledFunctionBackward";   // 2.6, 2.14
inline constexpr std::string_view kWrapperCall =
    "inductor_wrapper_call";  // codegen/cpp_wrapper_cpu.py

// Artifacts. The unit is not what the name says: artifacts/op_runtime.cc.
inline constexpr const char* kEstimatedRuntime = "estimated_runtime_ns";  // 2.14

}  // namespace tlparse::inductor
