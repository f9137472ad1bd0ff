// Who wrote a log and what it could not write: libtrace_version, the second record of each of
// libtrace's files, and libtrace_loss. Shapes: schemas/json/libtrace/<artifact>.schema.json.
#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class TraceWriters final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    writer_ = tables.Use("trace_writer", 7);
    loss_ = tables.Use("trace_loss", 8);
    lost_record_ = tables.Use("lost_record", 4);
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers payload(object, context);
    if (record.name == "libtrace_loss") {
      AddLosses(record, payload, context);
    } else {
      context.rows().Add(writer_, record.id, payload.Text("libtrace_version"),
                         payload.Text("language"), payload.Text("program"), payload.Text("host"),
                         payload.Int("time_unix_ns"), payload.Int("utc_offset_s"));
    }
    return {};
  }

 private:
  static std::string Told(const std::optional<std::int64_t>& count) {
    if (!count) return "records lost, it is not told how many";
    return std::to_string(*count) + (*count == 1 ? " record lost" : " records lost");
  }

  void AddLosses(const Record& record, const CellMembers& payload, IngestContext& context) {
    const auto time = [&](std::string_view name) {
      const std::optional<std::int64_t> time_us = payload.Int(name);
      return time_us == 0 ? std::nullopt : time_us;  // 0: unknown
    };
    const std::optional<std::int64_t> first_us = time("first_us");
    const std::optional<std::int64_t> last_us = time("last_us");
    RowBatch& rows = context.rows();
    bool is_told = false;
    ForEachObject(payload, "losses", context, [&](std::int64_t ordinal, const CellMembers& loss) {
      const std::optional<std::int64_t> count = loss.Int("record_count");
      const std::optional<StaticText> kind = loss.Text("kind");
      const std::optional<StaticText> reason = loss.Text("reason");
      rows.Add(loss_, record.id, ordinal, kind, count, loss.Int("total_record_count"), reason,
               first_us, last_us);
      context.Log(ImportCode::kRecordsLost, Told(count) +
                                                (kind ? ", " + std::string(kind->text) : "") +
                                                (reason ? ": " + std::string(reason->text) : ""));
      is_told = true;
    });
    if (!is_told) context.Log(ImportCode::kRecordsLost, Told(std::nullopt));
    const std::optional<simdjson::dom::object> by_record = payload.Object("by_record");
    if (!by_record) return;
    std::int64_t ordinal = 0;
    for (const simdjson::dom::key_value_pair& lost : *by_record) {
      const std::optional<std::int64_t> count = AsInt(lost.value);
      if (!count) payload.Odd("by_record", "an object of integers");
      rows.Add(lost_record_, record.id, ordinal++, SafeText(rows, lost.key), count);
    }
  }

  TableId writer_ = 0;
  TableId loss_ = 0;
  TableId lost_record_ = 0;
};

}  // namespace

TLPARSE_ARTIFACT(trace_writer, TraceWriters, "artifact/libtrace_version", "artifact/libtrace_loss")

}  // namespace tlparse
