// triton_kernel_info: how each Triton kernel of a graph was tuned and how long it took to compile
// (torch/_inductor/async_compile.py). A JSON object by kernel name.
#include "rows/triton_kernel.h"

#include <unordered_set>

#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"

namespace tlparse {
namespace {

class TritonKernels final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<TritonKernelRow>();
    tables.Use<TritonKernelUseRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    std::optional<std::int64_t> content_id =
        context.contents().OfPayload(ContentKind::kTritonKernels, record.payload_id);
    if (!content_id) {
      ASSIGN_OR_RETURN(const simdjson::dom::object kernels, PayloadObject(context));
      // Compile times differ from run to run: distinct payloads are distinct content.
      const Hash128 hash = HashBytes(context.Payload());
      const ContentId content =
          context.contents().Intern(context.rows(), ContentKind::kTritonKernels, hash, record.id);
      context.contents().LinkPayload(context.rows(), ContentKind::kTritonKernels, record.payload_id,
                                     content.id);
      if (content.is_new) AddKernels(content.id, kernels, context);
      content_id = content.id;
    }
    const GraphState* graph = context.graphs().Current(record, true);
    context.rows().Add(
        TritonKernelUseRow{.record_id = record.id,
                           .compile_id = record.compile_row_id(),
                           .graph_id = graph != nullptr ? std::optional(graph->id) : std::nullopt,
                           .content_id = *content_id});
    return {};
  }

 private:
  void AddKernels(std::int64_t content_id, const simdjson::dom::object& kernels,
                  IngestContext& context) {
    // The key of the table; of equal names the first counts
    std::unordered_set<std::string_view> seen;
    for (const simdjson::dom::key_value_pair& kernel : kernels) {
      simdjson::dom::object info;
      if (kernel.value.get(info) != simdjson::SUCCESS) {
        context.Log(ImportCode::kBadPayload,
                    "kernel '" + std::string(kernel.key) + "' is not an object");
        continue;
      }
      const StaticText name = SafeText(context.rows(), kernel.key);
      if (!seen.insert(name.text).second) continue;
      const JsonMembers members(info, context, ImportCode::kBadPayload);
      std::optional<simdjson::dom::element> config = members.Any("best_config");
      if (!config) config = members.Any("only_config");
      RowBatch& rows = context.rows();
      const auto text = [&](std::optional<std::string_view> value) {
        return value ? std::optional(SafeText(rows, *value)) : std::nullopt;
      };
      rows.Add(TritonKernelRow{.content_id = content_id,
                               .name = name,
                               .autotune_cache_state = text(members.String("autotune_cache_state")),
                               .num_configs = members.Int("num_configs"),
                               .compile_time_us = members.Int("compile_time_us"),
                               .config = config ? text(simdjson::minify(*config)) : std::nullopt,
                               .info = SafeText(rows, simdjson::minify(kernel.value))});
    }
  }
};

}  // namespace

TLPARSE_ARTIFACT(triton_kernel, TritonKernels, "artifact/triton_kernel_info")

}  // namespace tlparse
