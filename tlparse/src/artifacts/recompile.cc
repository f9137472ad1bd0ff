// recompile_reasons: why a frame is compiled again (get_and_maybe_log_recompilation_reasons in
// torch/_dynamo/guards.py). A JSON list of texts; 2.14 writes the bare text if there is exactly
// one. Each says
//
//   <earlier compile>: <failed check>   # <source line>  # <file>:<line> in <function> (HINT: …)
//   User stack trace:
//     File …
//
// of which everything behind the check may be missing.
#include "rows/recompile.h"

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/python_traceback.h"
#include "artifacts/common/text/recompile_origin.h"
#include "base/ascii.h"

namespace tlparse {
namespace {

struct Reason {
  std::string_view prior_label;
  std::string_view guard;
  std::string_view user_file;
  std::optional<std::int64_t> user_line;
};

// The compile id at the start of "0/1: …" or "!2/0/1: …"; empty if there is none.
std::string_view PriorLabel(std::string_view text) {
  std::size_t end = text.starts_with('!') ? 1 : 0;
  const std::size_t first = end;
  while (end < text.size() && (IsDigit(text[end]) || (text[end] == '/' && end > first))) ++end;
  if (end == first || text.substr(end, 2) != ": ") return {};
  return text.substr(0, end);
}

Reason ParseReason(std::string_view text) {
  constexpr std::string_view kUserStack = "\nUser stack trace:\n";
  constexpr std::string_view kCommentMark = "  # ";
  Reason reason;
  reason.prior_label = PriorLabel(text);
  if (!reason.prior_label.empty()) text.remove_prefix(reason.prior_label.size() + 2);
  const std::size_t stack = text.rfind(kUserStack);
  const std::string_view check = text.substr(0, stack);
  const std::size_t source = check.find(kCommentMark);
  reason.guard = TrimEnd(check.substr(0, source));
  const RecompileOrigin origin = OriginOfRecompile(check);
  reason.user_file = origin.file;
  reason.user_line = origin.line;
  if (stack != std::string_view::npos) {
    // Not cut on the left, unlike the comment. The user's own line, where there is one, not that
    // of PyTorch or a library below it.
    const std::string_view frames = text.substr(stack + kUserStack.size());
    std::optional<PythonFrame> frame = LastFrame(frames, true);
    if (!frame) frame = LastFrame(frames);
    if (frame) {
      reason.user_file = frame->file;
      reason.user_line = frame->line;
    }
  }
  return reason;
}

class Recompiles final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override { tables.Use<RecompileRow>(); }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    const std::string_view text = context.Payload();
    if (!text.starts_with('[')) {
      if (text.empty()) return Fail(ErrorCode::kBadJson, "there is no reason");
      AddRow(record, 0, text, context);
      return {};
    }
    ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
    simdjson::dom::array reasons;
    if (payload.get(reasons) != simdjson::SUCCESS)
      return Fail(ErrorCode::kBadJson, "the payload is not a list");
    std::int64_t ordinal = 0;
    for (const simdjson::dom::element& element : reasons) {
      std::string_view reason;
      if (element.get(reason) == simdjson::SUCCESS) {
        AddRow(record, ordinal, reason, context);
      } else {
        context.Log(ImportCode::kBadPayload,
                    "reason " + std::to_string(ordinal) + " is not a string");
      }
      ++ordinal;
    }
    return {};
  }

 private:
  void AddRow(const Record& record, std::int64_t ordinal, std::string_view text,
              IngestContext& context) {
    const Reason reason = ParseReason(text);
    std::optional<std::int64_t> prior_id;
    if (!reason.prior_label.empty()) {
      if (const CompileState* prior =
              record.process->FindCompile(std::string(reason.prior_label))) {
        prior_id = prior->id;
      } else {
        context.Log(ImportCode::kUnresolvedCompile,
                    "compile " + std::string(reason.prior_label) + " is not in this log");
      }
    }
    context.rows().Add(RecompileRow{.record_id = record.id,
                                    .ordinal = ordinal,
                                    .compile_id = record.compile_row_id(),
                                    .prior_compile_id = prior_id,
                                    .prior_label_id = context.OptionalText(reason.prior_label),
                                    .reason_id = context.Text(text),
                                    .guard_id = context.OptionalText(reason.guard),
                                    .user_file_id = context.OptionalText(reason.user_file),
                                    .user_line = reason.user_line});
  }
};

}  // namespace

TLPARSE_ARTIFACT(recompile, Recompiles, BeginsAgain("artifact/recompile_reasons"))

}  // namespace tlparse
