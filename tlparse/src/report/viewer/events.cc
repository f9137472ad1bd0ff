#include "report/viewer/events.h"

#include "base/json_writer.h"

namespace tlparse {

Result<std::unique_ptr<EventStream>> EventStream::Open(const std::string& database_path,
                                                       std::int64_t run_id) {
  ASSIGN_OR_RETURN(Database database, Database::Open(database_path, Database::Mode::kReadOnly));
  std::unique_ptr<EventStream> stream(new EventStream(std::move(database)));
  ASSIGN_OR_RETURN(
      Statement rows,
      stream->database_.Prepare(
          "SELECT e.name, e.phase, e.start_us, e.duration_us, "
          "coalesce(e.rank, p.pid), iif(e.tid = 0, p.pid, e.tid), e.args FROM chromium_event e "
          "JOIN process p ON p.id = e.process_id JOIN log_file f ON f.id = p.log_file_id "
          "WHERE f.run_id = ?1 AND e.start_us IS NOT NULL ORDER BY e.record_id"));
  rows.Bind(1, run_id);
  stream->rows_ = std::move(rows);
  return stream;
}

Result<std::string> EventStream::Next() {
  std::string json;
  if (!rows_) return json;
  while (json.size() < (256 << 10)) {
    ASSIGN_OR_RETURN(const bool has_row, rows_->Step());
    if (!has_row) {
      json += is_first_ ? "[]\n" : "\n]\n";
      rows_.reset();
      return json;
    }
    json += is_first_ ? "[\n" : ",\n";
    is_first_ = false;
    AppendEvent(json);
  }
  return json;
}

void EventStream::AppendEvent(std::string& json) {
  JsonWriter event;
  event.BeginObject().Key("name").String(rows_->Text(0)).Key("ph").String(rows_->Text(1));
  // Perfetto groups by pid: a rank is what people look for.
  event.Key("ts").Real(rows_->Real(2)).Key("pid").Int(rows_->Int(4)).Key("tid").Int(rows_->Int(5));
  if (!rows_->IsNull(3)) event.Key("dur").Real(rows_->Real(3));
  if (rows_->Text(1) == "i") event.Key("s").String("p");
  if (const std::string_view args = rows_->Text(6); !args.empty() && args.front() == '{')
    event.Key("args").Raw(args);
  json += event.EndObject().text();
}

}  // namespace tlparse
