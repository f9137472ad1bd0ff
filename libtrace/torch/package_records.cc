#include "torch/package_records.h"

#include <optional>
#include <string_view>

#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/trace.h"
#include "torch/zip_file.h"

namespace libtrace {
namespace {

constexpr uint64_t kMaxCodeSize = uint64_t{64} << 20;

// Under the names that PyTorch gives it while it compiles a package: the wrapper calls the kernels
// of the other file; packages of 2.6 hold one file.
std::string_view DumpName(std::string_view file) {
  if (file.ends_with(".wrapper.cpp")) return "inductor_aot_wrapper_code";
  if (file.ends_with(".kernel.cpp")) return "inductor_aot_kernel_code";
  return "inductor_aot_code";
}

}  // namespace

void EmitPackageCode(const std::string& path, RunDigest* digest, CallSite location) {
  constexpr std::string_view kFolder = "data/aotinductor/";
  ZipFile zip;
  if (!zip.Open(path)) return;
  for (const ZipFile::Member& member : zip.members()) {
    const std::string_view name = member.name;
    const size_t folder = name.find(kFolder);
    if (folder == std::string_view::npos || !name.ends_with(".cpp")) continue;
    const auto code = zip.Read(member, kMaxCodeSize);
    if (!code) continue;
    EmitGraphDump(DumpName(name), "cpp", name, *code, location);
    if (digest == nullptr) continue;
    // The file itself is named after its content.
    std::string_view model = name.substr(folder + kFolder.size());
    model = model.substr(0, model.find('/'));
    digest->Kernel(std::string(model).append("/").append(DumpName(name)), *code);
  }
}

void EmitPackageProvenance(const Package& package, CallSite location) {
  if (CurrentProvenanceLevel() == ProvenanceLevel::kOff) return;
  Provenance provenance;
  for (const PackageKernel& kernel : package.kernels) {
    for (const std::string& node : kernel.post_grad_nodes)
      provenance.AddKernelToPost(kernel.name, node);
    for (const std::string& trace : kernel.stack_traces)
      provenance.AddStackTrace(kernel.name, trace);
    // The package lists both kinds of nodes per kernel, not which became which: that is known only
    // of a single one.
    if (kernel.post_grad_nodes.size() != 1) continue;
    for (const std::string& node : kernel.pre_grad_nodes)
      provenance.AddPreToPost(node, kernel.post_grad_nodes[0]);
  }
  provenance.Emit(location);
}

}  // namespace libtrace
