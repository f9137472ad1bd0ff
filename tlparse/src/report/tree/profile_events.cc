#include "report/tree/profile_events.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "base/json_writer.h"
#include "queries/report/tree/profile_events.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

// Below the process ids of Linux there is room for those of devices above.
constexpr std::int64_t kFirstDevicePid = 10'000'000;
constexpr std::int64_t kMostDevices = 1000;  // of a process

struct Kind {
  std::string_view category;
  const char* sql;  // of one profile; the columns are those that Writer::Add reads
};
constexpr Kind kKinds[] = {
    {"graph_call",
     "SELECT coalesce(t.text, 'graph call') AS name, s.thread_id, s.device, s.stream, "
     "s.start_ns, s.duration_ns FROM compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id "
     "WHERE s.profile_id = ? AND s.kind IN (SELECT id FROM compiled_slice_kind WHERE is_call)"},
    {"region",
     "SELECT 'Torch-Compiled Region: ' || coalesce(t.text, '') AS name, s.thread_id, "
     "s.start_ns, s.duration_ns FROM compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id "
     "WHERE s.profile_id = ? AND s.kind = (SELECT id FROM compiled_slice_kind "
     "WHERE name = 'region')"},
    {"cpu_op",
     "SELECT t.text AS name, o.thread_id, o.start_ns, o.duration_ns "
     "FROM op_run_row o JOIN text_row t ON t.id = o.name_id WHERE o.profile_id = ?"},
    {"user_annotation",
     "SELECT t.text AS name, a.thread_id, a.device, a.stream, a.start_ns, a.duration_ns "
     "FROM annotation_row a JOIN text_row t ON t.id = a.name_id WHERE a.profile_id = ?"},
    // Ops and frames that ran as kernels are listed as ops and frames.
    {"kernel",
     "SELECT t.text AS name, k.thread_id, k.device, k.stream, k.start_ns, k.duration_ns "
     "FROM kernel_run_row k JOIN text_row t ON t.id = k.name_id "
     "WHERE k.profile_id = ? AND k.op_run_id IS NULL"},
    {"gpu_memcpy",
     "SELECT t.text AS name, coalesce(c.device, -1) AS device, c.stream, c.start_ns, "
     "c.duration_ns "
     "FROM device_copy_row c JOIN text_row t ON t.id = c.name_id WHERE c.profile_id = ?"},
};

// Nanoseconds as microseconds, exactly.
std::string Us(std::int64_t ns) {
  return ns < 0 ? fmt::format("{}", ns / 1000) : fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

class Writer {
 public:
  Writer(Database& database, std::int64_t pid, const AddEvent& add)
      : database_(database), pid_(pid), add_(add) {}

  Result<void> Add(const Kind& kind, std::int64_t profile_id) {
    ASSIGN_OR_RETURN(Statement statement, database_.Prepare(kind.sql));
    statement.Bind(1, profile_id);
    FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(statement))) {
      std::int64_t pid = pid_;
      const std::optional<std::int64_t> device = row.OptionalInt("device");
      if (device) {
        ASSIGN_OR_RETURN(pid, DevicePid(*device));
      }
      const std::int64_t tid = row.Int(device ? "stream" : "thread_id");
      JsonWriter event;
      event.BeginObject().Key("ph").String("X").Key("cat").String(kind.category);
      event.Key("name").String(row.Text("name")).Key("pid").Int(pid).Key("tid").Int(tid);
      event.Key("ts").Raw(Us(row.Int("start_ns"))).Key("dur").Raw(Us(row.Int("duration_ns")));
      event.EndObject();
      RETURN_IF_ERROR(add_(event.text()));
    }
    return {};
  }

 private:
  Result<std::int64_t> DevicePid(std::int64_t device) {
    const std::int64_t number =
        device < 0 || device >= kMostDevices - 1 ? kMostDevices - 1 : device;
    const std::int64_t pid = kFirstDevicePid + pid_ % kFirstDevicePid * kMostDevices + number;
    if (named_.insert(pid).second) {
      JsonWriter event;
      event.BeginObject().Key("ph").String("M").Key("name").String("process_name");
      event.Key("pid").Int(pid).Key("tid").Int(0).Key("args").BeginObject();
      event.Key("name").String(fmt::format("device {} of {}", device, pid_));
      RETURN_IF_ERROR(add_(event.EndObject().EndObject().text()));
    }
    return pid;
  }

  Database& database_;
  std::int64_t pid_;
  const AddEvent& add_;
  std::set<std::int64_t> named_;
};

}  // namespace

Result<void> AddProfileEvents(Database& database, std::int64_t process_id, std::int64_t pid,
                              const AddEvent& add) {
  Writer writer(database, pid, add);
  FOR_EACH_ROW(const ProfileOfProcess& profile,
               Query<ProfileOfProcess>(database, {.process_id = process_id})) {
    for (const Kind& kind : kKinds) RETURN_IF_ERROR(writer.Add(kind, profile.id));
  }
  return {};
}

Result<void> AddEventsWithoutLog(Database& database, std::int64_t run_id, bool by_rank,
                                 const AddEvent& add) {
  FOR_EACH_ROW(const ProfileWithoutLog& profile,
               Query<ProfileWithoutLog>(database, {.run_id = run_id, .by_rank = by_rank})) {
    Writer writer(database, profile.pid, add);
    for (const Kind& kind : kKinds) RETURN_IF_ERROR(writer.Add(kind, profile.id));
  }
  return {};
}

}  // namespace tlparse
