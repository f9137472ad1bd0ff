// AOTInductor packages (.pt2, zip archives) and single kernel_information.json files: the models,
// their kernels with Python lines, and the list of members. Of a package only small descriptive
// members are unpacked, into memory.
#include "inputs/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "inputs/common/plain_json.h"
#include "inputs/package/kernel_information.h"
#include "inputs/package/zip_archive.h"
#include "rows/package.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostInformationBytes = std::size_t{32} << 20;
constexpr std::size_t kMostMetadataBytes = std::size_t{1} << 20;
constexpr std::size_t kMostMetadataFiles = 64;  // of one model
constexpr std::size_t kMostModels = 1024;

// What the members of one model's folder say.
struct ModelFiles {
  std::vector<std::size_t> metadata;  // indices of its *metadata.json
  std::optional<std::size_t> information;
  bool has_library = false;  // .so, .pyd, .dll
  bool has_sources = false;
};

// "gpt/data/aotinductor/model/x.so" → "model"; empty: of no model.
std::string_view ModelOf(std::string_view name) {
  constexpr std::string_view kFolder = "data/aotinductor/";
  std::size_t at = name.find(kFolder);
  if (at == name.npos || (at > 0 && name[at - 1] != '/')) return {};
  name.remove_prefix(at + kFolder.size());
  const std::size_t slash = name.find('/');
  return slash == name.npos ? std::string_view() : name.substr(0, slash);
}

std::optional<std::string> TextOf(const std::map<std::string, std::string>& facts,
                                  const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() || found->second.empty() ? std::nullopt
                                                       : std::optional(found->second);
}

void LogPackageProblem(const PlainProblem& problem, std::string_view where,
                       RuntimeContext& context) {
  ImportPlace place;
  place.byte_offset = problem.byte_offset;
  context.Log(problem.is_cut ? ImportCode::kCutProfile : ImportCode::kBadRuntimeFile,
              fmt::format("{}: {}", where, problem.message), place);
}

// The file's bytes are read for their number and hash; the archive is read by its directory.
Result<void> ReadThrough(RuntimeContext& context) {
  std::string buffer(std::size_t{1} << 20, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t count, context.Read(buffer.data(), buffer.size()));
    if (count == 0) return {};
  }
}

class PackageReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    UseKernelTables(tables);
    tables.Use<PackageModelRow>();
    tables.Use<PackageMemberRow>();
  }
  Result<bool> Read(RuntimeContext& context) override;

 private:
  Result<void> AddModel(std::string_view name, const ModelFiles& model, ZipArchive& archive,
                        RuntimeContext& context);
  void AddMembers(const ZipArchive& archive, RuntimeContext& context);
};

void PackageReader::AddMembers(const ZipArchive& archive, RuntimeContext& context) {
  std::int64_t ordinal = 0;
  std::int64_t outside = 0;
  for (const ZipMember& member : archive.members()) {
    const std::string name = SanitizeUtf8(member.name);
    PackageMemberRow row{
        .profile_id = context.profile_id(), .ordinal = ordinal++, .name = RowText(name)};
    row.size_bytes = member.size_bytes;
    row.stored_bytes = member.stored_bytes;
    row.crc32 = member.crc32;
    context.rows().Add(row);
    outside += member.name.starts_with('/') || member.name.find("..") != std::string::npos;
  }
  if (outside > 0)
    context.Log(ImportCode::kBadRuntimeFile,
                fmt::format("{} of the package lead{} outside of it; nothing was written there",
                            Count(outside, "name"), VerbS(outside)));
}

Result<void> PackageReader::AddModel(std::string_view name, const ModelFiles& model,
                                     ZipArchive& archive, RuntimeContext& context) {
  std::map<std::string, std::string> facts;
  JsonWriter metadata;
  metadata.BeginObject();
  for (const std::size_t member : model.metadata) {
    const std::string_view path = archive.members()[member].name;
    Result<std::string> bytes = archive.Read(member, kMostMetadataBytes);
    if (!bytes) {
      context.Log(ImportCode::kBadRuntimeFile, fmt::format("{}: {}", path, bytes.error().message));
      continue;
    }
    const PlainDocument document = ReadPlainJson(*bytes);
    if (document.problem) LogPackageProblem(*document.problem, path, context);
    const PlainValue root = document.tree.root();
    std::string json;
    if (root.AppendJson(json, kMostMetadataBytes))
      metadata.Key(path.substr(path.rfind('/') + 1)).Raw(json);
    for (std::size_t i = 0; i < root.size(); ++i) {
      const auto [key, value] = root.Member(i);
      if (key.Text() && value.Text()) facts[std::string(*key.Text())] = SanitizeUtf8(*value.Text());
    }
  }
  std::optional<AddedKernels> kernels;
  if (model.information) {
    const std::string_view path = archive.members()[*model.information].name;
    Result<std::string> bytes = archive.Read(*model.information, kMostInformationBytes);
    if (!bytes) {
      context.Log(ImportCode::kBadRuntimeFile, fmt::format("{}: {}", path, bytes.error().message));
    } else {
      const PlainDocument document = ReadPlainJson(*bytes);
      if (document.problem) LogPackageProblem(*document.problem, path, context);
      ASSIGN_OR_RETURN(kernels, AddKernelInformation(document.tree.root(), context));
    }
  }
  const std::string safe_name = SanitizeUtf8(name);
  const std::string json = metadata.EndObject().Take();
  const std::optional<std::string> device = TextOf(facts, "AOTI_DEVICE_KEY"),
                                   platform = TextOf(facts, "AOTI_PLATFORM"),
                                   machine = TextOf(facts, "AOTI_MACHINE"),
                                   capability = TextOf(facts, "AOTI_COMPUTE_CAPABILITY");
  RowBatch& rows = context.rows();
  PackageModelRow row{.id = context.NextId(rows.TableOf<PackageModelRow>()),
                      .profile_id = context.profile_id(),
                      .name = RowText(safe_name),
                      .kernel_count = kernels ? kernels->count : 0,
                      .is_standalone = model.has_sources && !model.has_library ? 1 : 0};
  if (kernels) row.content_id = kernels->content_id;
  row.device = device;
  row.platform = platform;
  row.machine = machine;
  row.compute_capability = capability;
  row.metadata = json;
  rows.Add(row);
  context.facts().kept_count += row.kernel_count.value();
  return context.Flush();
}

Result<bool> PackageReader::Read(RuntimeContext& context) {
  context.facts().kind = "package";
  RETURN_IF_ERROR(ReadThrough(context));
  Result<ZipArchive> archive = ZipArchive::Open(context.input().path);
  if (!archive) {
    if (archive.error().code == ErrorCode::kDatabase) return tl::unexpected<Error>(archive.error());
    context.Log(archive.error().code == ErrorCode::kNotATrace ? ImportCode::kCutProfile
                                                              : ImportCode::kBadRuntimeFile,
                archive.error().message);
    return true;
  }
  std::map<std::string, ModelFiles, std::less<>> models;
  const std::vector<ZipMember>& members = archive->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string_view name = members[i].name;
    const std::string_view model_name = ModelOf(name);
    if (model_name.empty() ||
        (models.size() >= kMostModels && models.find(model_name) == models.end()))
      continue;
    ModelFiles& model = models[std::string(model_name)];
    if (name.ends_with("/kernel_information.json")) model.information = i;
    if (name.ends_with("metadata.json") && model.metadata.size() < kMostMetadataFiles)
      model.metadata.push_back(i);
    model.has_library |= name.ends_with(".so") || name.ends_with(".pyd") || name.ends_with(".dll");
    model.has_sources |= name.ends_with(".cpp");
  }
  if (models.empty()) {
    context.facts().kind = "a zip archive without an AOTInductor model";
    return false;
  }
  context.facts().event_count = static_cast<std::int64_t>(members.size());
  AddMembers(*archive, context);
  for (const auto& [name, model] : models)
    RETURN_IF_ERROR(AddModel(name, model, *archive, context));
  return true;
}

// A kernel_information.json without a package.
class KernelInformationReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    UseKernelTables(tables);
    tables.Use<PackageModelRow>();
  }
  Result<bool> Read(RuntimeContext& context) override {
    context.facts().kind = "kernel_information";
    std::string bytes(kMostInformationBytes, '\0');
    std::size_t size = 0;
    while (size < bytes.size()) {
      ASSIGN_OR_RETURN(const std::size_t count,
                       context.Read(bytes.data() + size, bytes.size() - size));
      if (count == 0) break;
      size += count;
    }
    const bool is_whole = size < bytes.size();
    bytes.resize(size);
    if (!is_whole) RETURN_IF_ERROR(ReadThrough(context));
    const PlainDocument document = ReadPlainJson(bytes);
    if (document.problem) LogPackageProblem(*document.problem, "kernel_information", context);
    ASSIGN_OR_RETURN(const std::optional<AddedKernels> kernels,
                     AddKernelInformation(document.tree.root(), context));
    const std::string_view path = context.input().path;
    const std::string name = SanitizeUtf8(path.substr(path.rfind('/') + 1));
    RowBatch& rows = context.rows();
    PackageModelRow row{.id = context.NextId(rows.TableOf<PackageModelRow>()),
                        .profile_id = context.profile_id(),
                        .name = RowText(name),
                        .kernel_count = kernels ? kernels->count : 0,
                        .is_standalone = 0};
    if (kernels) row.content_id = kernels->content_id;
    rows.Add(row);
    context.facts().event_count = static_cast<std::int64_t>(document.tree.root().size());
    context.facts().kept_count = row.kernel_count.value();
    return true;
  }
};

}  // namespace

std::unique_ptr<RuntimeReader> MakePackageReader() { return std::make_unique<PackageReader>(); }
std::unique_ptr<RuntimeReader> MakeKernelInformationReader() {
  return std::make_unique<KernelInformationReader>();
}

}  // namespace tlparse
