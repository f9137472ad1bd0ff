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
          "coalesce(e.rank, p.pid) AS pid, iif(e.tid = 0, p.pid, e.tid) AS tid, e.args "
          "FROM chromium_event e "
          "JOIN process p ON p.id = e.process_id JOIN log_file f ON f.id = p.log_file_id "
          "WHERE f.run_id = ?1 AND e.start_us IS NOT NULL ORDER BY e.record_id"));
  rows.Bind(1, run_id);
  stream->rows_ = AnyRows::Of(std::move(rows));
  return stream;
}

Result<std::string> EventStream::Next() {
  std::string json;
  if (!rows_) return json;
  while (json.size() < (256 << 10)) {
    if (!rows_->Next()) {
      if (const std::unique_ptr<Error> error = rows_->TakeError())
        return tl::unexpected<Error>(std::move(*error));
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
  const AnyRow& row = rows_->row();
  const std::string_view phase = row.Text("phase"), args = row.Text("args");
  JsonWriter event;
  event.BeginObject().Key("name").String(row.Text("name")).Key("ph").String(phase);
  // Perfetto groups by pid: a rank is what people look for.
  event.Key("ts").Real(row.Real("start_us")).Key("pid").Int(row.Int("pid"));
  event.Key("tid").Int(row.Int("tid"));
  if (!row.IsNull("duration_us")) event.Key("dur").Real(row.Real("duration_us"));
  if (phase == "i") event.Key("s").String("p");
  if (!args.empty() && args.front() == '{') event.Key("args").Raw(args);
  json += event.EndObject().text();
}

}  // namespace tlparse
