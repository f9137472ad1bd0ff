// What a C++ program compiled, loaded and shipped, as logged by libtrace: libtrace_model_load (one
// model that was loaded or compiled), libtrace_package (the contents of a .pt2),
// libtrace_torchscript_signature (what a specialised graph takes and gives) and
// libtrace_cache_bundle (cache entries saved or put back together). Shapes:
// schemas/json/libtrace*/<artifact>.schema.json.
#include "rows/model.h"

#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class Models final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<ModelLoadRow>();
    tables.Use<ModelPackageRow>();
    tables.Use<PackageFileRow>();
    tables.Use<PackageExternKernelRow>();
    tables.Use<PackageCodeRow>();
    tables.Use<PackageKernelRow>();
    tables.Use<ModelWeightRow>();
    tables.Use<GraphValueRow>();
    tables.Use<CacheBundleRow>();
    tables.Use<CacheBundleKeyRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers payload(object, context);
    if (record.name == "libtrace_model_load") {
      AddLoad(record, payload, context);
    } else if (record.name == "libtrace_package") {
      AddPackage(record, payload, context);
    } else if (record.name == "libtrace_cache_bundle") {
      AddBundle(record, payload, context);
    } else {
      AddValues(record, payload, "inputs", context);
      AddValues(record, payload, "outputs", context);
    }
    return {};
  }

 private:
  void AddLoad(const Record& record, const CellMembers& load, IngestContext& context) {
    context.rows().Add(
        ModelLoadRow{.record_id = record.id,
                     .compile_id = record.compile_row_id(),
                     .model = load.Text("model"),
                     .kind = load.Text("kind"),
                     .state = load.Text("state"),
                     .cache_key = load.Text("cache_key"),
                     .duration_ns = load.Int("duration_ns"),
                     .memory_before_bytes = load.Int("memory_before_bytes"),
                     .memory_after_bytes = load.Int("memory_after_bytes"),
                     .weight_size_bytes = load.Int("weight_size_bytes"),
                     .device_peak_before_bytes = load.Int("device_peak_before_bytes"),
                     .device_peak_after_bytes = load.Int("device_peak_after_bytes"),
                     .clone_size_bytes = load.Int("clone_size_bytes"),
                     .excess_bytes = load.Int("excess_bytes"),
                     .device_excess_bytes = load.Int("device_excess_bytes")});
    AddWeights(record, load, context);
  }

  void AddPackage(const Record& record, const CellMembers& package, IngestContext& context) {
    RowBatch& rows = context.rows();
    rows.Add(ModelPackageRow{.record_id = record.id,
                             .compile_id = record.compile_row_id(),
                             .path = package.Text("path"),
                             .kind = package.Text("kind"),
                             .size_bytes = package.Int("size_bytes"),
                             .weight_size_bytes = package.Int("weight_size_bytes"),
                             .metadata = package.ObjectJson("metadata"),
                             .unread_files = package.ListJson("unread_files")});
    ForEachObject(package, "files", context, [&](std::int64_t ordinal, const CellMembers& file) {
      rows.Add(PackageFileRow{.record_id = record.id,
                              .ordinal = ordinal,
                              .name = file.Text("name"),
                              .size_bytes = file.Int("size_bytes"),
                              .crc32 = file.Int("crc32")});
    });
    ForEachObject(package, "kernels", context,
                  [&](std::int64_t ordinal, const CellMembers& kernel) {
                    rows.Add(PackageKernelRow{.record_id = record.id,
                                              .ordinal = ordinal,
                                              .name = kernel.Text("name"),
                                              .pre_grad_nodes = kernel.ListJson("pre_grad_nodes"),
                                              .post_grad_nodes = kernel.ListJson("post_grad_nodes"),
                                              .stack_traces = kernel.ListJson("stack_traces")});
                  });
    AddWeights(record, package, context);
    AddCode(record, package, context);
  }

  void AddCode(const Record& record, const CellMembers& package, IngestContext& context) {
    RowBatch& rows = context.rows();
    ForEachObject(package, "extern_kernels", context,
                  [&](std::int64_t ordinal, const CellMembers& kernel) {
                    rows.Add(PackageExternKernelRow{.record_id = record.id,
                                                    .ordinal = ordinal,
                                                    .model = kernel.Text("model"),
                                                    .kernel_index = kernel.Int("index"),
                                                    .name = kernel.Text("name"),
                                                    .op = kernel.Text("op")});
                  });
    ForEachObject(package, "code", context, [&](std::int64_t ordinal, const CellMembers& code) {
      rows.Add(PackageCodeRow{.record_id = record.id,
                              .ordinal = ordinal,
                              .model = code.Text("model"),
                              .linkage = code.Text("linkage"),
                              .is_cpp_only = code.Bool("is_cpp_only"),
                              .machine = code.Text("machine"),
                              .libraries = code.ListJson("libraries")});
    });
  }

  void AddWeights(const Record& record, const CellMembers& payload, IngestContext& context) {
    ForEachObject(payload, "weights", context,
                  [&](std::int64_t ordinal, const CellMembers& weight) {
                    context.rows().Add(ModelWeightRow{.record_id = record.id,
                                                      .ordinal = ordinal,
                                                      .name = weight.Text("name"),
                                                      .shape = weight.ListJson("shape"),
                                                      .dtype = weight.Text("dtype"),
                                                      .device = weight.Text("device"),
                                                      .size_bytes = weight.Int("size_bytes"),
                                                      .storage_id = weight.Int("storage_id")});
                  });
  }

  void AddValues(const Record& record, const CellMembers& signature, std::string_view list,
                 IngestContext& context) {
    const std::optional<StaticText> model = signature.Text("model");
    ForEachObject(signature, list, context, [&](std::int64_t ordinal, const CellMembers& value) {
      context.rows().Add(GraphValueRow{.record_id = record.id,
                                       .role = StaticText{list == "inputs" ? "input" : "output"},
                                       .ordinal = ordinal,
                                       .compile_id = record.compile_row_id(),
                                       .model = model,
                                       .name = value.Text("name"),
                                       .type = value.Text("type"),
                                       .dtype = value.Text("dtype"),
                                       .device = value.Text("device"),
                                       .shape = value.ListJson("shape"),
                                       .stride = value.ListJson("stride"),
                                       .requires_grad = value.Bool("requires_grad")});
    });
  }

  void AddBundle(const Record& record, const CellMembers& bundle, IngestContext& context) {
    RowBatch& rows = context.rows();
    rows.Add(CacheBundleRow{.record_id = record.id,
                            .compile_id = record.compile_row_id(),
                            .action = bundle.Text("action"),
                            .path = bundle.Text("path"),
                            .entry_count = bundle.Int("entry_count"),
                            .size_bytes = bundle.Int("size_bytes"),
                            .skipped_count = bundle.Int("skipped_count")});
    const std::optional<simdjson::dom::object> layers = bundle.Object("keys_by_layer");
    if (!layers) return;
    std::int64_t ordinal = 0;
    for (const simdjson::dom::key_value_pair& layer : *layers) {
      simdjson::dom::array keys;
      if (layer.value.get(keys) != simdjson::SUCCESS) {
        bundle.Odd("keys_by_layer", "an object of lists");
        continue;
      }
      for (const simdjson::dom::element& element : keys) {
        std::string_view key;
        if (element.get(key) != simdjson::SUCCESS)
          bundle.Odd("keys_by_layer", "an object of lists of strings");
        else
          rows.Add(CacheBundleKeyRow{.record_id = record.id,
                                     .ordinal = ordinal++,
                                     .layer = SafeText(rows, layer.key),
                                     .key = SafeText(rows, key)});
      }
    }
  }
};

}  // namespace

TLPARSE_ARTIFACT(model, Models, "artifact/libtrace_model_load", "artifact/libtrace_package",
                 "artifact/libtrace_torchscript_signature", "artifact/libtrace_cache_bundle")

}  // namespace tlparse
