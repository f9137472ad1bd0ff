// libtrace_package: what is inside a model package (an AOTInductor `.pt2`, a TorchScript archive).
// Schema: libtrace_package.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/artifacts/model_load.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

struct PackageFile {
  std::string name{};
  uint64_t size_bytes = 0;
  std::optional<uint32_t> crc32;
};

struct PackageKernel {
  std::string name{};  // with its debug handle, if it has one
  std::vector<std::string> pre_grad_nodes{};
  std::vector<std::string> post_grad_nodes{};
  std::vector<std::string> stack_traces{};
};

struct Package {
  std::string path{};
  std::string kind{};  // aotinductor, torchscript
  uint64_t size_bytes = 0;
  std::vector<PackageFile> files{};
  std::vector<PackageKernel> kernels{};
  std::vector<ModelWeight> weights{};
  std::vector<std::pair<std::string, std::string>> metadata{};  // of the package itself
};

void EmitPackage(const Package& package, CallSite location = CallSite::Current()) noexcept;

}  // namespace LIBTRACE_EXPORT
