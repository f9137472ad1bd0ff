// The calls of kernels in the generated code of an AOTInductor package.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "libtrace/artifacts/package.h"
#include "libtrace/torch/op_observer.h"

namespace libtrace {

struct CodeCalls {
  FusedOps calls;            // of C++ kernels, an element for each call
  bool is_straight = false;  // one run makes each call once, in their order
};

// From the text of the code; see package_kernels.h.
CodeCalls ReadCodeCalls(std::string_view code, const std::vector<PackageKernel>& kernels);

// Bytes of one element; empty: no dtype of that name.
std::optional<uint64_t> SizeOfDtype(std::string_view name);
// Whether the FLOPs of an op of that name grow faster than its tensors.
bool IsProduct(std::string_view op);

}  // namespace libtrace
