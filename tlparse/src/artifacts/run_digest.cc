// libtrace_run_digest: hashes of a graph's kernels, autotuning choices and outputs in one run.
// Shape: schemas/json/libtrace/libtrace_run_digest.schema.json.
#include "rows/run_digest.h"

#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class RunDigests final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override { tables.Use<RunDigestRow>(); }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers digest(object, context);
    const std::optional<StaticText> graph = digest.Text("graph");
    const std::optional<std::int64_t> call = digest.Int("call");
    ForEachObject(digest, "parts", context, [&](std::int64_t ordinal, const CellMembers& part) {
      context.rows().Add(RunDigestRow{.record_id = record.id,
                                      .ordinal = ordinal,
                                      .compile_id = record.compile_row_id(),
                                      .graph = graph,
                                      .call = call,
                                      .kind = part.Text("kind"),
                                      .name = part.Text("name"),
                                      .hash = part.Text("hash"),
                                      .value = part.Text("text"),
                                      .norm = part.Number("norm"),
                                      .nan_count = part.Int("nan"),
                                      .inf_count = part.Int("inf")});
    });
    return {};
  }
};

}  // namespace

TLPARSE_ARTIFACT(run_digest, RunDigests, "artifact/libtrace_run_digest")

}  // namespace tlparse
