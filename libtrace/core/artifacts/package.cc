#include "libtrace/artifacts/package.h"

#include "core/artifacts/weights.h"
#include "libtrace/trace.h"

namespace libtrace {
namespace {

void WriteFile(JsonWriter& json, const PackageFile& file) {
  json.BeginObject().Field("name", file.name).Field("size_bytes", file.size_bytes);
  json.OptionalField("crc32", file.crc32).EndObject();
}

void WriteKernel(JsonWriter& json, const PackageKernel& kernel) {
  json.BeginObject().Field("name", kernel.name).Field("pre_grad_nodes", kernel.pre_grad_nodes);
  json.Field("post_grad_nodes", kernel.post_grad_nodes);
  json.Field("stack_traces", kernel.stack_traces).EndObject();
}

void WriteExternKernel(JsonWriter& json, const PackageExternKernel& kernel) {
  json.BeginObject().Field("index", kernel.index).Field("model", kernel.model);
  json.Field("name", kernel.name).Field("op", kernel.op).EndObject();
}

void WriteCode(JsonWriter& json, const PackageCode& code) {
  json.BeginObject().Field("model", code.model).Field("linkage", code.linkage);
  json.Field("is_cpp_only", code.is_cpp_only).OptionalField("machine", code.machine);
  json.Field("libraries", code.libraries).EndObject();
}

void WritePackage(JsonWriter& json, const Package& package) {
  json.BeginObject().Field("path", package.path).Field("kind", package.kind);
  json.Field("size_bytes", package.size_bytes).Key("files").BeginArray();
  for (const PackageFile& file : package.files) WriteFile(json, file);
  json.EndArray().Key("kernels").BeginArray();
  for (const PackageKernel& kernel : package.kernels) WriteKernel(json, kernel);
  json.EndArray();
  detail::WriteWeights(json, package.weights);
  json.Field("metadata", package.metadata).Key("extern_kernels").BeginArray();
  for (const PackageExternKernel& kernel : package.extern_kernels) WriteExternKernel(json, kernel);
  json.EndArray().Key("code").BeginArray();
  for (const PackageCode& code : package.code) WriteCode(json, code);
  json.EndArray();
  if (!package.unread_files.empty()) json.Field("unread_files", package.unread_files);
  json.EndObject();
}

template <class Write>
void EmitAsPackage(Write&& write, CallSite location) noexcept {
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact("libtrace_package", JsonStyle::kOneLine, write, options, location);
}

}  // namespace

void EmitPackage(const Package& package, CallSite location) noexcept {
  EmitAsPackage([&](JsonWriter& json) { WritePackage(json, package); }, location);
}

void detail::EmitPackage(FunctionRef<void(Package&)> fill, CallSite location) noexcept {
  EmitAsPackage(
      [&](JsonWriter& json) {
        Package package;
        fill(package);
        WritePackage(json, package);
      },
      location);
}

}  // namespace libtrace
