// What a C++ program compiled, loaded and shipped, as libtrace tells it: libtrace_model_load (one
// model that was loaded or compiled), libtrace_package (the contents of a .pt2),
// libtrace_torchscript_signature (what a specialised graph takes and gives) and
// libtrace_cache_bundle (cache entries saved or put back together). Shapes:
// schemas/json/libtrace*/<artifact>.schema.json.
#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class Models final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    load_ = tables.Use("model_load", 10);
    package_ = tables.Use("model_package", 7);
    file_ = tables.Use("package_file", 5);
    kernel_ = tables.Use("package_kernel", 6);
    weight_ = tables.Use("model_weight", 8);
    value_ = tables.Use("graph_value", 12);
    bundle_ = tables.Use("cache_bundle", 7);
    bundle_key_ = tables.Use("cache_bundle_key", 4);
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
    context.rows().Add(load_, record.id, record.compile_row_id(), load.Text("model"),
                       load.Text("kind"), load.Text("state"), load.Text("cache_key"),
                       load.Int("duration_ns"), load.Int("memory_before_bytes"),
                       load.Int("memory_after_bytes"), load.Int("weight_size_bytes"));
    AddWeights(record, load, context);
  }

  void AddPackage(const Record& record, const CellMembers& package, IngestContext& context) {
    RowBatch& rows = context.rows();
    rows.Add(package_, record.id, record.compile_row_id(), package.Text("path"),
             package.Text("kind"), package.Int("size_bytes"), package.Int("weight_size_bytes"),
             package.ObjectJson("metadata"));
    ForEachObject(package, "files", context, [&](std::int64_t ordinal, const CellMembers& file) {
      rows.Add(file_, record.id, ordinal, file.Text("name"), file.Int("size_bytes"),
               file.Int("crc32"));
    });
    ForEachObject(package, "kernels", context,
                  [&](std::int64_t ordinal, const CellMembers& kernel) {
                    rows.Add(kernel_, record.id, ordinal, kernel.Text("name"),
                             kernel.ListJson("pre_grad_nodes"), kernel.ListJson("post_grad_nodes"),
                             kernel.ListJson("stack_traces"));
                  });
    AddWeights(record, package, context);
  }

  void AddWeights(const Record& record, const CellMembers& payload, IngestContext& context) {
    ForEachObject(
        payload, "weights", context, [&](std::int64_t ordinal, const CellMembers& weight) {
          context.rows().Add(weight_, record.id, ordinal, weight.Text("name"),
                             weight.ListJson("shape"), weight.Text("dtype"), weight.Text("device"),
                             weight.Int("size_bytes"), weight.Int("storage_id"));
        });
  }

  void AddValues(const Record& record, const CellMembers& signature, std::string_view list,
                 IngestContext& context) {
    const std::optional<StaticText> model = signature.Text("model");
    ForEachObject(signature, list, context, [&](std::int64_t ordinal, const CellMembers& value) {
      context.rows().Add(value_, record.id, StaticText{list == "inputs" ? "input" : "output"},
                         ordinal, record.compile_row_id(), model, value.Text("name"),
                         value.Text("type"), value.Text("dtype"), value.Text("device"),
                         value.ListJson("shape"), value.ListJson("stride"),
                         value.Bool("requires_grad"));
    });
  }

  void AddBundle(const Record& record, const CellMembers& bundle, IngestContext& context) {
    RowBatch& rows = context.rows();
    rows.Add(bundle_, record.id, record.compile_row_id(), bundle.Text("action"),
             bundle.Text("path"), bundle.Int("entry_count"), bundle.Int("size_bytes"),
             bundle.Int("skipped_count"));
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
          rows.Add(bundle_key_, record.id, ordinal++, SafeText(rows, layer.key),
                   SafeText(rows, key));
      }
    }
  }

  TableId load_ = 0;
  TableId package_ = 0;
  TableId file_ = 0;
  TableId kernel_ = 0;
  TableId weight_ = 0;
  TableId value_ = 0;
  TableId bundle_ = 0;
  TableId bundle_key_ = 0;
};

}  // namespace

TLPARSE_ARTIFACT(model, Models, "artifact/libtrace_model_load", "artifact/libtrace_package",
                 "artifact/libtrace_torchscript_signature", "artifact/libtrace_cache_bundle")

}  // namespace tlparse
