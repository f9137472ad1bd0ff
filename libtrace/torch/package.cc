#include "libtrace/torch/package.h"

#include <map>
#include <string_view>

#include "torch/json_reader.h"
#include "torch/zip_file.h"

namespace libtrace {
namespace {

constexpr uint64_t kMaxTextSize = uint64_t{64} << 20;

// {"<kernel>": {"stack_traces": […], "post_grad_nodes": […], "pre_grad_nodes": […]}, …}
void ReadKernels(std::string_view text, std::vector<PackageKernel>& kernels) {
  JsonReader json(text);
  std::vector<PackageKernel> found;
  const bool is_whole = json.Object([&](const std::string& name) {
    PackageKernel& kernel = found.emplace_back();
    kernel.name = name;
    return json.Object([&](const std::string& member) {
      if (member == "stack_traces") return json.Strings(kernel.stack_traces);
      if (member == "post_grad_nodes") return json.Strings(kernel.post_grad_nodes);
      if (member == "pre_grad_nodes") return json.Strings(kernel.pre_grad_nodes);
      return json.Skip();
    });
  });
  if (is_whole) kernels.insert(kernels.end(), found.begin(), found.end());
}

void ReadMetadata(std::string_view text,
                  std::vector<std::pair<std::string, std::string>>& metadata) {
  JsonReader json(text);
  std::map<std::string, std::string> found;
  const bool is_whole =
      json.Object([&](const std::string& name) { return json.String(found[name]); });
  if (!is_whole) return;
  for (const auto& [name, value] : metadata)
    found.erase(name);  // newer packages repeat it for wrapper and kernels
  metadata.insert(metadata.end(), found.begin(), found.end());
}

}  // namespace

Status DescribePackage(const std::string& path, Package& package) {
  ZipFile zip;
  if (Status status = zip.Open(path); !status) return status;
  package = Package{.path = path, .kind = "torchscript", .size_bytes = zip.size_bytes()};
  for (const ZipFile::Member& member : zip.members()) {
    package.files.push_back({member.name, member.size_bytes, member.crc32});
    const std::string_view name = member.name;
    if (name.find("data/aotinductor/") == std::string_view::npos) continue;
    package.kind = "aotinductor";
    if (name.ends_with("kernel_information.json")) {
      if (const auto text = zip.Read(member, kMaxTextSize)) ReadKernels(*text, package.kernels);
    } else if (name.ends_with("_metadata.json")) {
      if (const auto text = zip.Read(member, kMaxTextSize)) ReadMetadata(*text, package.metadata);
    }
  }
  return {};
}

}  // namespace libtrace
