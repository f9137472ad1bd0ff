// Who wrote a log and what it could not write: libtrace_version, the second record of each of
// libtrace's files, and libtrace_loss. Shapes: schemas/json/libtrace/<artifact>.schema.json.
#include "rows/trace_writer.h"

#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class TraceWriters final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<TraceWriterRow>();
    tables.Use<TraceLossRow>();
    tables.Use<LostRecordRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers payload(object, context);
    if (record.name == "libtrace_loss") {
      AddLosses(record, payload, context);
    } else {
      record.process->is_of_libtrace = true;
      if (const std::optional<std::int64_t> time_ns = payload.Int("time_unix_ns"))
        context.NoteTime(*time_ns / 1000, IngestContext::TimeBasis::kLibtraceVersion);
      context.rows().Add(TraceWriterRow{.record_id = record.id,
                                        .libtrace_version = payload.Text("libtrace_version"),
                                        .language = payload.Text("language"),
                                        .program = payload.Text("program"),
                                        .host = payload.Text("host"),
                                        .time_ns = payload.Int("time_unix_ns"),
                                        .utc_offset_s = payload.Int("utc_offset_s")});
    }
    return {};
  }

 private:
  static std::string CountText(const std::optional<std::int64_t>& count) {
    if (!count) return "records were lost; their number is unknown";
    return std::to_string(*count) + (*count == 1 ? " record lost" : " records lost");
  }
  static void LogLoss(const std::optional<std::int64_t>& count, std::string_view kind,
                      const std::optional<StaticText>& reason, IngestContext& context) {
    const std::string why = reason ? ": " + std::string(reason->text) : "";
    if (kind == "limited")
      return context.Log(ImportCode::kRecordsLimited,
                         (count ? std::to_string(*count) : "some") + " records left out" + why);
    context.Log(ImportCode::kRecordsLost,
                CountText(count) + (kind.empty() ? "" : ", " + std::string(kind)) + why);
  }

  void AddLosses(const Record& record, const CellMembers& payload, IngestContext& context) {
    const auto time = [&](std::string_view name) {
      const std::optional<std::int64_t> time_us = payload.Int(name);
      return time_us == 0 ? std::nullopt : time_us;  // 0: unknown
    };
    const std::optional<std::int64_t> first_us = time("first_us");
    const std::optional<std::int64_t> last_us = time("last_us");
    RowBatch& rows = context.rows();
    bool is_counted = false;
    ForEachObject(payload, "losses", context, [&](std::int64_t ordinal, const CellMembers& loss) {
      const std::optional<std::int64_t> count = loss.Int("record_count");
      const std::optional<StaticText> kind = loss.Text("kind");
      const std::optional<StaticText> reason = loss.Text("reason");
      rows.Add(TraceLossRow{.record_id = record.id,
                            .ordinal = ordinal,
                            .kind = kind,
                            .record_count = count,
                            .total_record_count = loss.Int("total_record_count"),
                            .reason = reason,
                            .first_us = first_us,
                            .last_us = last_us});
      LogLoss(count, kind ? kind->text : std::string_view(), reason, context);
      is_counted = true;
    });
    if (!is_counted) context.Log(ImportCode::kRecordsLost, CountText(std::nullopt));
    const std::optional<simdjson::dom::object> by_record = payload.Object("by_record");
    if (!by_record) return;
    std::int64_t ordinal = 0;
    for (const simdjson::dom::key_value_pair& lost : *by_record) {
      const std::optional<std::int64_t> count = AsInt(lost.value);
      if (!count) payload.Odd("by_record", "an object of integers");
      rows.Add(LostRecordRow{.record_id = record.id,
                             .ordinal = ordinal++,
                             .name = SafeText(rows, lost.key),
                             .record_count = count});
    }
  }
};

}  // namespace

TLPARSE_ARTIFACT(trace_writer, TraceWriters, "artifact/libtrace_version", "artifact/libtrace_loss")

}  // namespace tlparse
