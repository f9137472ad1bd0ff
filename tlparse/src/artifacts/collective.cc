// inductor_collective_schedule: the collectives of one graph in scheduled order, as names of Python
// kernels (_dump_collective_schedule in torch/_inductor/debug.py). Written on a fresh compile only;
// collectives of cached graphs are read from the generated code (output_code.cc).
#include "rows/collective.h"

#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"

namespace tlparse {
namespace {

class Collectives final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<CollectiveRow>();
    tables.Use<CollectiveUseRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    std::optional<std::int64_t> content_id =
        context.contents().OfPayload(ContentKind::kSchedule, record.payload_id);
    if (!content_id) {
      ASSIGN_OR_RETURN(content_id, AddSchedule(record, context));
    }
    const GraphState* graph = context.graphs().CurrentOrOpen(record, context);
    context.rows().Add(
        CollectiveUseRow{.record_id = record.id,
                         .source = CollectiveSource::kSchedule,
                         .compile_id = record.compile_row_id(),
                         .graph_id = graph != nullptr ? std::optional(graph->id) : std::nullopt,
                         .content_id = *content_id});
    return {};
  }

 private:
  Result<std::int64_t> AddSchedule(const Record& record, IngestContext& context) {
    ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
    simdjson::dom::array names;
    if (payload.get(names) != simdjson::SUCCESS)
      return Fail(ErrorCode::kBadJson, "the payload is not a list");
    SequenceHash hash;
    hash.Add("schedule");  // distinguishes schedules from collectives of code
    for (const simdjson::dom::element& element : names) {
      std::string_view name;
      hash.Add(static_cast<std::int64_t>(element.get(name) == simdjson::SUCCESS));
      hash.Add(name);
    }
    const ContentId content =
        context.contents().Intern(context.rows(), ContentKind::kSchedule, hash.Digest(), record.id);
    context.contents().LinkPayload(context.rows(), ContentKind::kSchedule, record.payload_id,
                                   content.id);
    std::int64_t ordinal = 0;
    for (const simdjson::dom::element& element : names) {
      std::string_view name;
      const bool is_named = element.get(name) == simdjson::SUCCESS;
      if (!is_named && !element.is_null()) {
        context.Log(ImportCode::kBadPayload,
                    "element " + std::to_string(ordinal) + " is not a string; kept without name");
      }
      if (content.is_new) {
        context.rows().Add(CollectiveRow{
            .content_id = content.id,
            .ordinal = ordinal,
            .op = is_named ? std::optional(SafeText(context.rows(), name)) : std::nullopt,
            .is_wait = name.find("wait_tensor") != std::string_view::npos});
      }
      ++ordinal;
    }
    return content.id;
  }
};

}  // namespace

TLPARSE_ARTIFACT(collective, Collectives, "artifact/inductor_collective_schedule")

}  // namespace tlparse
