#include "libtrace/torch/package.h"

#include <map>
#include <string_view>
#include <utility>

#include "core/errno_scope.h"
#include "core/json_reader.h"
#include "libtrace/function_ref.h"
#include "torch/elf_needs.h"
#include "torch/package_weights.h"
#include "torch/zip_file.h"

namespace libtrace {
namespace {

constexpr uint64_t kMaxTextSize = uint64_t{64} << 20;
constexpr uint64_t kMaxCodeSize = uint64_t{256} << 20;
constexpr std::string_view kModels = "data/aotinductor/";
// Of an exported program: data/weights/<model>_weights_config.json.
constexpr std::string_view kWeightFiles = "data/weights/", kWeightsConfig = "_weights_config.json";

// {"<kernel>": {"stack_traces": […], "post_grad_nodes": […], "pre_grad_nodes": […]}, …}
void ReadKernels(std::string_view text, std::vector<PackageKernel>& kernels) {
  JsonReader json(text);
  std::vector<PackageKernel> found;
  const bool is_whole = json.Object([&](std::string_view name) {
    PackageKernel& kernel = found.emplace_back();
    kernel.name = JsonReader::Decoded(name);
    return json.Object([&](std::string_view member) {
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
  const bool is_whole = json.Object(
      [&](std::string_view name) { return json.String(found[JsonReader::Decoded(name)]); });
  if (!is_whole) return;
  for (const auto& [name, value] : metadata)
    found.erase(name);  // newer packages repeat it for wrapper and kernels
  metadata.insert(metadata.end(), found.begin(), found.end());
}

// {"nodes": [{"name": …, "node": {"target": …, …}}, …]}: the ops in the order of their indices. A
// file of another shape has none.
void ReadExternKernels(std::string_view text, std::string_view model,
                       std::vector<PackageExternKernel>& kernels) {
  JsonReader json(text);
  std::vector<PackageExternKernel> found;
  const auto read_node = [&](PackageExternKernel& kernel) {
    return json.Object([&](std::string_view member) {
      return member == "target" ? json.String(kernel.op) : json.Skip();
    });
  };
  const bool is_whole = json.Object([&](std::string_view list) {
    if (list != "nodes") return json.Skip();
    return json.Array([&] {
      PackageExternKernel& kernel = found.emplace_back();
      kernel.index = found.size() - 1;
      kernel.model = model;
      return json.Object([&](std::string_view member) {
        if (member == "name") return json.String(kernel.name);
        return member == "node" ? read_node(kernel) : json.Skip();
      });
    });
  });
  for (const PackageExternKernel& kernel : found) {
    if (kernel.op.empty()) return;  // nodes of something else
  }
  if (is_whole) kernels.insert(kernels.end(), found.begin(), found.end());
}

// What the files of one model's folder say about its code.
struct CodeFiles {
  bool has_sources = false, has_project = false, has_archive = false;
  const ZipFile::Member* shared_object = nullptr;
};

using ReadMember = FunctionRef<std::optional<std::string>(const ZipFile::Member&, uint64_t)>;

PackageCode CodeOf(ReadMember read, const std::string& model, const CodeFiles& files) {
  PackageCode code;
  code.model = model;
  code.linkage = files.shared_object != nullptr ? "shared"
                 : files.has_archive            ? "static"
                                                : "sources";
  code.is_cpp_only = files.shared_object == nullptr && files.has_project;
  if (files.shared_object == nullptr) return code;
  const auto object = read(*files.shared_object, kMaxCodeSize);
  const auto needs = object ? ReadElfNeeds(*object) : std::nullopt;
  if (!needs) return code;
  code.machine = needs->machine;
  code.libraries = needs->libraries;
  return code;
}

}  // namespace

Status DescribePackage(const std::string& path, Package& package) {
  const detail::ErrnoScope keeps_errno;
  ZipFile zip;
  if (Status status = zip.Open(path); !status) return status;
  package = Package{.path = path, .kind = "torchscript", .size_bytes = zip.size_bytes()};
  std::map<std::string, CodeFiles> models;
  std::vector<WeightsConfig> weights;
  const auto read = [&](const ZipFile::Member& member, uint64_t max_size_bytes) {
    auto text = zip.Read(member, max_size_bytes);
    if (!text && member.is_stored) package.unread_files.push_back(member.name);
    return text;
  };
  for (const ZipFile::Member& member : zip.members()) {
    package.files.push_back({member.name, member.size_bytes, member.crc32});
    if (!member.is_stored) package.unread_files.push_back(member.name);
    const std::string_view name = member.name;
    if (package.kind != "aotinductor" && name.find("/models/") != std::string_view::npos &&
        name.ends_with(".json"))
      package.kind = "exported_program";
    if (const size_t at = name.find(kWeightFiles);
        at != std::string_view::npos && name.ends_with(kWeightsConfig)) {
      const std::string_view file = name.substr(at + kWeightFiles.size());
      if (auto text = read(member, kMaxTextSize))
        weights.push_back({member.name,
                           std::string(file.substr(0, file.size() - kWeightsConfig.size())),
                           std::move(*text)});
    }
    const size_t place = name.find(kModels);
    if (place == std::string_view::npos) continue;
    package.kind = "aotinductor";
    const std::string_view inner = name.substr(place + kModels.size());
    const std::string model(inner.substr(0, inner.find('/')));
    CodeFiles& files = models[model];
    if (name.ends_with(".so")) files.shared_object = &member;
    files.has_sources |= name.ends_with(".cpp");
    files.has_project |= name.ends_with("CMakeLists.txt");
    files.has_archive |= name.ends_with(".a");
    if (name.ends_with("kernel_information.json")) {
      if (const auto text = read(member, kMaxTextSize)) ReadKernels(*text, package.kernels);
    } else if (name.ends_with("/weights_config.json")) {
      if (auto text = read(member, kMaxTextSize))
        weights.push_back({member.name, model, std::move(*text)});
    } else if (name.ends_with("_metadata.json")) {
      if (const auto text = read(member, kMaxTextSize)) ReadMetadata(*text, package.metadata);
    } else if (name.ends_with(".json")) {
      if (const auto text = read(member, kMaxTextSize))
        ReadExternKernels(*text, model, package.extern_kernels);
    }
  }
  for (const auto& [model, files] : models) {
    if (files.shared_object != nullptr || files.has_archive || files.has_sources)
      package.code.push_back(CodeOf(read, model, files));
  }
  package.weights = ReadPackageWeights(zip, weights, package.unread_files);
  return {};
}

}  // namespace libtrace
