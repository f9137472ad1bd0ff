#include "torch/package_records.h"

#include <optional>
#include <string_view>

#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/trace.h"
#include "torch/package_kernels.h"
#include "torch/zip_file.h"

namespace libtrace {
namespace {

constexpr uint64_t kMaxRecordSize = uint64_t{64} << 20;

// Under the names that PyTorch gives it while it compiles a package: the wrapper calls the kernels
// of the other file; packages of 2.6 hold one file.
std::string_view DumpName(std::string_view file) {
  if (file.ends_with(".wrapper.cpp")) return "inductor_aot_wrapper_code";
  if (file.ends_with(".kernel.cpp")) return "inductor_aot_kernel_code";
  return "inductor_aot_code";
}

}  // namespace

FusedOps EmitPackageCode(const Package& package, const std::string& path, const std::string& model,
                         RunDigest* digest, CallSite location) {
  constexpr std::string_view kFolder = "data/aotinductor/";
  ZipFile zip;
  if (!zip.Open(path)) return {};
  std::string of_model, information;
  for (const ZipFile::Member& member : zip.members()) {
    const std::string_view name = member.name;
    const size_t folder = name.find(kFolder);
    const bool is_code = name.ends_with(".cpp"),
               is_list = name.ends_with("kernel_information.json");
    if (folder == std::string_view::npos || (!is_code && !is_list)) continue;
    const auto text = zip.Read(member, kMaxRecordSize);
    if (!text) continue;
    std::string_view in_model = name.substr(folder + kFolder.size());
    in_model = in_model.substr(0, in_model.find('/'));
    if (in_model == model) (is_code ? of_model : information) += *text;
    if (!is_code) continue;
    EmitGraphDump(DumpName(name), "cpp", name, *text, location);
    // The file itself is named after its content.
    if (digest != nullptr)
      digest->Kernel(std::string(in_model).append("/").append(DumpName(name)), *text);
  }
  return PackageKernelCalls(of_model, information, package.kernels);
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
