// What the kernels of an AOTInductor package read and write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libtrace/artifacts/package.h"
#include "libtrace/torch/op_observer.h"

namespace libtrace {

// By the kernel's name, an element for each call in the code. Empty elements: the sizes of a tensor
// are not in the text (dynamic ones). A name that the code calls from several places and within a
// branch or loop is left out: which of the calls runs is not known.
//
// The C++ kernels, from `code`, the text that Inductor generated for the graph (PyTorch 2.6 to
// 2.14): it makes each buffer with its sizes, and calls each kernel with its buffers. FLOPs are those of
// the graph nodes that `kernels` lists, each over the largest tensor; without nodes only the bytes
// count. The ops that the code calls, from `information`, the text of kernel_information.json (2.14).
FusedOps PackageKernelCalls(std::string_view code, std::string_view information,
                            const std::vector<PackageKernel>& kernels);

}  // namespace libtrace
