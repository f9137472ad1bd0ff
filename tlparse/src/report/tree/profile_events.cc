#include "report/tree/profile_events.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "base/json_writer.h"

namespace tlparse {
namespace {

// Below the process ids of Linux there is room for those of devices above.
constexpr std::int64_t kFirstDevicePid = 10'000'000;
constexpr std::int64_t kMostDevices = 1000;  // of a process

struct Kind {
  std::string_view category;
  const char* sql;  // name, thread, device, stream, start_ns, duration_ns of one profile
};
constexpr Kind kKinds[] = {
    {"graph_call",
     "SELECT coalesce(t.text, 'graph call'), s.thread_id, s.device, s.stream, "
     "s.start_ns, s.duration_ns FROM compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id "
     "WHERE s.profile_id = ? AND s.kind IN (0, 6, 7)"},
    {"region",
     "SELECT 'Torch-Compiled Region: ' || coalesce(t.text, ''), s.thread_id, NULL, NULL, "
     "s.start_ns, s.duration_ns FROM compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id "
     "WHERE s.profile_id = ? AND s.kind = 1"},
    {"cpu_op",
     "SELECT t.text, o.thread_id, NULL, NULL, o.start_ns, o.duration_ns "
     "FROM op_run_row o JOIN text_row t ON t.id = o.name_id WHERE o.profile_id = ?"},
    {"user_annotation",
     "SELECT t.text, a.thread_id, a.device, a.stream, a.start_ns, a.duration_ns "
     "FROM annotation_row a JOIN text_row t ON t.id = a.name_id WHERE a.profile_id = ?"},
    // Ops and frames that ran as kernels are listed as ops and frames.
    {"kernel",
     "SELECT t.text, k.thread_id, k.device, k.stream, k.start_ns, k.duration_ns "
     "FROM kernel_run_row k JOIN text_row t ON t.id = k.name_id "
     "WHERE k.profile_id = ? AND k.op_run_id IS NULL"},
    {"gpu_memcpy",
     "SELECT t.text, NULL, coalesce(c.device, -1), c.stream, c.start_ns, c.duration_ns "
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
    ASSIGN_OR_RETURN(Statement rows, database_.Prepare(kind.sql));
    rows.Bind(1, profile_id);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, rows.Step());
      if (!has_row) return {};
      std::int64_t pid = pid_;
      if (!rows.IsNull(2)) {
        ASSIGN_OR_RETURN(pid, DevicePid(rows.Int(2)));
      }
      const std::int64_t tid = rows.IsNull(2) ? rows.Int(1) : rows.Int(3);
      JsonWriter event;
      event.BeginObject().Key("ph").String("X").Key("cat").String(kind.category);
      event.Key("name").String(rows.Text(0)).Key("pid").Int(pid).Key("tid").Int(tid);
      event.Key("ts").Raw(Us(rows.Int(4))).Key("dur").Raw(Us(rows.Int(5))).EndObject();
      RETURN_IF_ERROR(add_(event.text()));
    }
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
  ASSIGN_OR_RETURN(
      Statement profiles,
      database.Prepare("SELECT id FROM profile WHERE process_id = ? AND overlaps_id IS NULL "
                       "AND kind IN ('kineto', 'nsys', 'libtrace') ORDER BY id"));
  profiles.Bind(1, process_id);
  Writer writer(database, pid, add);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, profiles.Step());
    if (!has_row) return {};
    for (const Kind& kind : kKinds) RETURN_IF_ERROR(writer.Add(kind, profiles.Int(0)));
  }
}

Result<void> AddEventsWithoutLog(Database& database, std::int64_t run_id, bool by_rank,
                                 const AddEvent& add) {
  ASSIGN_OR_RETURN(
      Statement profiles,
      database.Prepare("SELECT id, coalesce(CASE WHEN ?2 THEN rank END, pid, -id) "
                       "FROM profile WHERE run_id = ?1 AND process_id IS NULL "
                       "AND overlaps_id IS NULL AND kind IN ('kineto', 'nsys') ORDER BY id"));
  profiles.Bind(1, run_id);
  profiles.Bind(2, std::int64_t{by_rank});
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, profiles.Step());
    if (!has_row) return {};
    Writer writer(database, profiles.Int(1), add);
    for (const Kind& kind : kKinds) RETURN_IF_ERROR(writer.Add(kind, profiles.Int(0)));
  }
}

}  // namespace tlparse
