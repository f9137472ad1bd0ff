// The code that libtorch's fuser (NNC) generates for a fused group.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <string>

namespace libtrace {

// The tensor expressions of the kernel, and its assembly where libtorch was built with LLVM.
// Generates the kernel again: some milliseconds. "" if it cannot.
std::string KernelCode(const std::shared_ptr<torch::jit::Graph>& group);

}  // namespace libtrace
