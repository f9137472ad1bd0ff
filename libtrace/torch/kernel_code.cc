#include "torch/kernel_code.h"

#include <torch/csrc/jit/tensorexpr/kernel.h>

#include <exception>
#include <sstream>

namespace libtrace {

std::string KernelCode(const std::shared_ptr<torch::jit::Graph>& group) {
  try {
    torch::jit::tensorexpr::TensorExprKernel kernel(group);
    std::ostringstream code;
    code << *kernel.getCodeGenStmt();
    try {
      const std::string assembly = kernel.getCodeText("asm");
      if (!assembly.empty()) code << "\n// assembly\n" << assembly;
    } catch (const std::exception&) {  // no LLVM: the expressions are interpreted
    }
    return code.str();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace libtrace
