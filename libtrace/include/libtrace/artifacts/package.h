// libtrace_package: what is inside a model package (an AOTInductor `.pt2`, a TorchScript archive).
// Schema: libtrace_package.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "libtrace/artifacts/model_load.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/trace.h"

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

// An op that generated code does not contain but calls, as the package lists it: the code names it
// by this index.
struct PackageExternKernel {
  uint64_t index = 0;   // over the list of the model, all subgraphs included
  std::string model{};  // folder of the model within the package
  std::string name{};   // of the buffer or node that it makes
  std::string op{};     // torch.ops.acme.twice.default
};

// What the compiled code of one model of a package was built for and linked with.
struct PackageCode {
  std::string model{};    // folder of the model within the package
  std::string linkage{};  // shared, static, sources (nothing is compiled yet)
  // The package holds sources and a CMake project instead of a shared object.
  bool is_cpp_only = false;
  std::optional<std::string> machine{};  // x86_64, aarch64; of the shared object
  std::vector<std::string> libraries{};  // that the shared object needs
};

struct Package {
  std::string path{};
  std::string kind{};  // aotinductor, exported_program, torchscript
  uint64_t size_bytes = 0;
  std::vector<PackageFile> files{};
  std::vector<PackageKernel> kernels{};
  std::vector<ModelWeight> weights{};
  std::vector<std::pair<std::string, std::string>> metadata{};  // of the package itself
  std::vector<PackageExternKernel> extern_kernels{};
  std::vector<PackageCode> code{};
  // Files that the rest says nothing of: compressed (PyTorch compresses none), too large, damaged,
  // or of a shape that is not known.
  std::vector<std::string> unread_files{};
};

void EmitPackage(const Package& package, CallSite location = CallSite::Current()) noexcept;

namespace detail {
void EmitPackage(FunctionRef<void(Package&)> fill, CallSite location) noexcept;
}
// The same with a function that fills in the Package; called only when tracing is on. If it throws,
// the record is lost and counted.
template <class Fill, class = std::enable_if_t<!std::is_convertible_v<Fill&&, const Package&>>>
void EmitPackage(Fill&& fill, CallSite location = CallSite::Current()) noexcept {
  static_assert(std::is_invocable_v<Fill&, Package&>,
                "libtrace: write the function as [&](libtrace::Package& package) { package.path = "
                "my_path; }");
  if (LIBTRACE_UNLIKELY(IsEnabled())) detail::EmitPackage(fill, location);
}

}  // namespace LIBTRACE_EXPORT
