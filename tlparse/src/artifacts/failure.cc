// Artifacts that hold a traceback of something that failed: dynamo_error
// (torch/_dynamo/convert_frame.py), eager_compile_backwards_failure
// (torch/_functorch/_aot_autograd), make_fx_fail_partial (the graph so far, no traceback) and
// fx_interpreter_error (message and graph).
#include "rows/failure.h"

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

// A graph follows the message; it stays in the payload.
std::string_view WithoutGraph(std::string_view text) {
  return TrimEnd(text.substr(0, text.find("\nGraphModule:")));
}

class Failures final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override { tables.Use<FailureRow>(); }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    const std::string_view text = context.Payload();
    const TracebackSummary summary = SummarizeTraceback(text);
    std::string_view reason = summary.message;
    std::optional<PythonFrame> user_frame = summary.user_frame;
    if (record.name == "make_fx_fail_partial") {
      reason = "tracing failed; the payload is the graph so far";
    } else if (summary.type.empty()) {
      reason = WithoutGraph(text);
      user_frame = LastFrame(reason, true);
    }
    context.rows().Add(
        FailureRow{.id = context.NextId<FailureRow>(),
                   .record_id = record.id,
                   .compile_id = record.compile_row_id(),
                   .attempt = record.attempt,
                   .kind_id = context.Text(record.name),
                   .type_id = context.OptionalText(summary.type),
                   .reason_id = context.OptionalText(reason),
                   .user_file_id = context.OptionalText(user_frame ? user_frame->file : ""),
                   .user_line = user_frame ? std::optional(user_frame->line) : std::nullopt});
    if (record.compile != nullptr && record.name == "dynamo_error")
      record.compile->is_failed = true;
    return {};
  }

 private:
};

}  // namespace

TLPARSE_ARTIFACT(failure, Failures, "artifact/dynamo_error",
                 "artifact/eager_compile_backwards_failure", "artifact/make_fx_fail_partial",
                 "artifact/fx_interpreter_error")

}  // namespace tlparse
