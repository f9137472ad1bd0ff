// nsys export --type sqlite: kernels, copies, the calls that launched them, and NVTX ranges. Its
// tables are made only where there is something to hold, and older exports lack columns: each is
// looked for before it is read. The database is opened read-only, its schema untrusted.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "rows/profile.h"
#include "runtime/measured_span.h"
#include "runtime/nsys_export.h"
#include "runtime/nsys_range.h"
#include "runtime/reader.h"

namespace tlparse {
namespace {

class NsysReader final : public RuntimeReader {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<ProfileThreadRow>();
    tables.Use<KernelRunRow>();
    tables.Use<DeviceCopyRow>();
    tables.Use<DeviceLaunchRow>();
    tables.Use<OpRunRow>();
    tables.Use<AnnotationRow>();
    tables.Use<CompiledSliceRow>();
  }
  Result<bool> Read(RuntimeContext& context) override;

 private:
  // In nanoseconds since the epoch.
  struct Span {
    std::int64_t start_ns, duration_ns;
  };
  Result<void> ReadAll(NsysExport& file, RuntimeContext& context);
  Result<void> ReadFacts(NsysExport& file, RuntimeContext& context);
  Result<void> ReadKernels(NsysExport& file, RuntimeContext& context);
  Result<void> ReadCopies(NsysExport& file, const std::string& table, const char* kind,
                          RuntimeContext& context);
  Result<void> ReadLaunches(NsysExport& file, RuntimeContext& context);
  Result<void> ReadRanges(NsysExport& file, RuntimeContext& context);
  void AddRange(std::string_view text, const Span& span, std::optional<std::int64_t> thread,
                RuntimeContext& context);
  std::optional<std::int64_t> Thread(std::optional<std::int64_t> global_tid,
                                     RuntimeContext& context);
  // Numbers of correlation count per process: those of a second process are kept apart.
  std::optional<std::int64_t> Correlation(std::optional<std::int64_t> number,
                                          std::optional<std::int64_t> global_id);
  // The time of a row whose columns 0 and 1 are its start and end, added to the stretch that the
  // file measured. Nothing if it has none, or an impossible one: the row is counted as left out.
  std::optional<Span> SpanOf(sqlite3_stmt* row, const std::string& table, RuntimeContext& context);
  void ReportLeftOut(RuntimeContext& context) const;

  std::int64_t epoch_ns_ = 0;
  DurationSum durations_;
  std::map<std::string, std::int64_t> without_time_, bad_times_;  // rows, by table
  std::int64_t other_ranges_ = 0;
  std::map<std::int64_t, std::int64_t> threads_;  // by globalTid
  std::map<std::int64_t, std::int64_t> pids_;     // of device work, by their order
};

std::string Rows(std::int64_t count) {
  return fmt::format("{} row{} left out", count, count == 1 ? "" : "s");
}

std::int64_t PidOf(std::int64_t global_id) { return global_id >> 24 & 0xFFFFFF; }

std::optional<std::int64_t> NsysReader::Thread(std::optional<std::int64_t> global_tid,
                                               RuntimeContext& context) {
  if (!global_tid) return std::nullopt;
  const auto [found, is_new] = threads_.try_emplace(*global_tid, 0);
  if (is_new) {
    RowBatch& rows = context.rows();
    found->second = context.NextId(rows.TableOf<ProfileThreadRow>());
    const std::string pid = fmt::format("{}", PidOf(*global_tid)),
                      tid = fmt::format("{}", *global_tid & 0xFFFFFF);
    rows.Add(ProfileThreadRow{.id = found->second,
                              .profile_id = context.profile_id(),
                              .pid = RowText(pid),
                              .tid = RowText(tid)});
  }
  return found->second;
}

std::optional<std::int64_t> NsysReader::Correlation(std::optional<std::int64_t> number,
                                                    std::optional<std::int64_t> global_id) {
  if (!number) return std::nullopt;
  const auto [found, is_new] =
      pids_.try_emplace(global_id ? PidOf(*global_id) : 0, static_cast<std::int64_t>(pids_.size()));
  return *number | found->second << 40;
}

std::optional<NsysReader::Span> NsysReader::SpanOf(sqlite3_stmt* row, const std::string& table,
                                                   RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  ++facts.event_count;
  const std::optional<std::int64_t> start_ns = IntAt(row, 0), end_ns = IntAt(row, 1);
  if (!start_ns || !end_ns) {
    ++without_time_[table];
    return std::nullopt;
  }
  if (!IsTimeInRange(*start_ns, 0) || !IsTimeInRange(*end_ns, 0) ||
      !IsTimeInRange(*start_ns, *end_ns - *start_ns) || !durations_.Add(*end_ns - *start_ns)) {
    ++bad_times_[table];
    return std::nullopt;
  }
  const Span span{epoch_ns_ + *start_ns, *end_ns - *start_ns};
  const std::int64_t last_ns = span.start_ns + span.duration_ns;
  facts.start_ns = std::min(facts.start_ns.value_or(span.start_ns), span.start_ns);
  facts.end_ns = std::max(facts.end_ns.value_or(last_ns), last_ns);
  ++facts.kept_count;
  return span;
}

void NsysReader::ReportLeftOut(RuntimeContext& context) const {
  if (other_ranges_ > 0) {
    context.Log(ImportCode::kProfileEventsLeftOut,
                fmt::format("{} of NVTX_EVENTS: marks, or without a text", Rows(other_ranges_)));
  }
  for (const auto& [table, count] : without_time_) {
    context.Log(ImportCode::kProfileEventsLeftOut,
                fmt::format("{} of {}: without a start or an end", Rows(count), table));
  }
  for (const auto& [table, count] : bad_times_) {
    context.Log(ImportCode::kBadProfileEvent,
                fmt::format("{} of {}: an end before the start, or a time out of range",
                            Rows(count), table));
  }
}

Result<void> NsysReader::ReadFacts(NsysExport& file, RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  RETURN_IF_ERROR(file.Query("SELECT name, value FROM META_DATA_EXPORT",
                             [&](sqlite3_stmt* row) -> Result<void> {
                               if (TextAt(row, 0) == "EXPORT_SCHEMA_VERSION")
                                 facts.format_version = SanitizeUtf8(TextAt(row, 1));
                               return {};
                             }));
  bool has_epoch = false;
  if (file.Column("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "t") != "NULL") {
    RETURN_IF_ERROR(file.Query("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
                               [&](sqlite3_stmt* row) -> Result<void> {
                                 const std::optional<std::int64_t> epoch_ns = IntAt(row, 0);
                                 has_epoch = epoch_ns && IsTimeInRange(*epoch_ns, 0);
                                 epoch_ns_ = has_epoch ? *epoch_ns : 0;
                                 return {};
                               }));
  }
  if (!has_epoch)
    context.Log(ImportCode::kAssumedClock,
                "the export does not say when its session began; times count from its beginning");
  if (file.Column("TARGET_INFO_SYSTEM_ENV", "value", "t") != "NULL") {
    RETURN_IF_ERROR(file.Query("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'",
                               [&](sqlite3_stmt* row) -> Result<void> {
                                 facts.host = SanitizeUtf8(TextAt(row, 0));
                                 return {};
                               }));
  }
  return {};
}

Result<void> NsysReader::ReadKernels(NsysExport& file, RuntimeContext& context) {
  const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
  if (!file.Has(table)) return {};
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  const bool has_names = file.Has("StringIds");
  const std::string name =
      column("shortName") != "NULL" ? column("shortName") : column("demangledName");
  return file.Query(
      fmt::format("SELECT {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {} FROM {} k {}",
                  column("start"), column("end"), column("deviceId"), column("streamId"),
                  column("correlationId"), column("globalPid"), has_names ? "s.value" : "NULL",
                  column("gridX"), column("gridY"), column("gridZ"), column("blockX"),
                  column("blockY"), column("blockZ"), table,
                  has_names ? fmt::format("LEFT JOIN StringIds s ON s.id = {}", name) : ""),
      [&](sqlite3_stmt* row) -> Result<void> {
        const std::optional<Span> span = SpanOf(row, table, context);
        if (!span) return {};
        const auto three = [&](int first) -> std::optional<std::int64_t> {
          if (!IntAt(row, first)) return std::nullopt;
          return context.Text(fmt::format("[{}, {}, {}]", *IntAt(row, first),
                                          IntAt(row, first + 1).value_or(1),
                                          IntAt(row, first + 2).value_or(1)));
        };
        RowBatch& rows = context.rows();
        KernelRunRow kernel{.id = context.NextId(rows.TableOf<KernelRunRow>()),
                            .profile_id = context.profile_id(),
                            .name_id = context.Text(TextAt(row, 6)),
                            .start_ns = span->start_ns,
                            .duration_ns = span->duration_ns};
        kernel.device = IntAt(row, 2);
        kernel.stream = IntAt(row, 3);
        kernel.correlation = Correlation(IntAt(row, 4), IntAt(row, 5));
        kernel.grid_id = three(7);
        kernel.block_id = three(10);
        rows.Add(kernel);
        return context.Flush();
      });
}

Result<void> NsysReader::ReadCopies(NsysExport& file, const std::string& table, const char* kind,
                                    RuntimeContext& context) {
  if (!file.Has(table)) return {};
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  return file.Query(
      fmt::format("SELECT {}, {}, {}, {}, {}, {}, {}, {} FROM {} k", column("start"), column("end"),
                  column("deviceId"), column("streamId"), column("correlationId"),
                  column("globalPid"), column("bytes"), column("copyKind"), table),
      [&](sqlite3_stmt* row) -> Result<void> {
        const std::optional<Span> span = SpanOf(row, table, context);
        if (!span) return {};
        // CUPTI's numbers of the kinds that occur in training.
        constexpr std::string_view kKinds[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                               "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
        const std::int64_t number = IntAt(row, 7).value_or(0);
        const std::string name =
            IntAt(row, 7) ? fmt::format("{} {}", kind,
                                        number >= 0 && number < 11 ? kKinds[number] : kKinds[0])
                          : kind;
        RowBatch& rows = context.rows();
        DeviceCopyRow copy{.id = context.NextId(rows.TableOf<DeviceCopyRow>()),
                           .profile_id = context.profile_id(),
                           .kind = RowText(std::string_view(kind)),
                           .name_id = context.Text(name),
                           .start_ns = span->start_ns,
                           .duration_ns = span->duration_ns};
        copy.device = IntAt(row, 2);
        copy.stream = IntAt(row, 3);
        copy.correlation = Correlation(IntAt(row, 4), IntAt(row, 5));
        copy.size_bytes = IntAt(row, 6);
        rows.Add(copy);
        return context.Flush();
      });
}

// Calls of the runtime that queued what is in the file.
Result<void> NsysReader::ReadLaunches(NsysExport& file, RuntimeContext& context) {
  const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
  std::string queued;
  for (const std::string work :
       {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
    if (file.Column(work, "correlationId", "w") != "NULL")
      queued +=
          fmt::format("{}SELECT correlationId FROM {}", queued.empty() ? "" : " UNION ", work);
  }
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  if (queued.empty() || column("correlationId") == "NULL") return {};
  const bool has_names = file.Has("StringIds") && column("nameId") != "NULL";
  return file.Query(
      fmt::format("SELECT {}, {}, {}, {}, {} FROM {} k {} WHERE k.correlationId IN ({})",
                  column("start"), column("end"), column("globalTid"), column("correlationId"),
                  has_names ? "s.value" : "NULL", table,
                  has_names ? "LEFT JOIN StringIds s ON s.id = k.nameId" : "", queued),
      [&](sqlite3_stmt* row) -> Result<void> {
        const std::optional<Span> span = SpanOf(row, table, context);
        if (!span) return {};
        RowBatch& rows = context.rows();
        DeviceLaunchRow launch{
            .id = context.NextId(rows.TableOf<DeviceLaunchRow>()),
            .profile_id = context.profile_id(),
            .name_id = context.Text(TextAt(row, 4)),
            .start_ns = span->start_ns,
            .duration_ns = span->duration_ns,
            .correlation = Correlation(IntAt(row, 3), IntAt(row, 2)).value_or(0)};
        launch.thread_id = Thread(IntAt(row, 2), context);
        rows.Add(launch);
        return context.Flush();
      });
}

void NsysReader::AddRange(std::string_view text, const Span& span,
                          std::optional<std::int64_t> thread, RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const NsysRange range = ParseNsysRange(text);
  if (range.slice) {
    CompiledSliceRow row{.id = context.NextId(rows.TableOf<CompiledSliceRow>()),
                         .profile_id = context.profile_id(),
                         .kind = *range.slice,
                         .start_ns = span.start_ns,
                         .duration_ns = span.duration_ns};
    row.name_id = context.OptionalText(range.name);
    row.thread_id = thread;
    row.sequence_number = range.sequence;
    rows.Add(row);
  } else if (range.is_op) {
    OpRunRow row{.id = context.NextId(rows.TableOf<OpRunRow>()),
                 .profile_id = context.profile_id(),
                 .name_id = context.Text(range.name),
                 .start_ns = span.start_ns,
                 .duration_ns = span.duration_ns};
    row.thread_id = thread;
    row.sequence_number = range.sequence;
    rows.Add(row);
  } else {
    AnnotationRow row{.id = context.NextId(rows.TableOf<AnnotationRow>()),
                      .profile_id = context.profile_id(),
                      .name_id = context.Text(range.name),
                      .start_ns = span.start_ns,
                      .duration_ns = span.duration_ns};
    row.thread_id = thread;
    row.step = range.step;
    rows.Add(row);
  }
}

Result<void> NsysReader::ReadRanges(NsysExport& file, RuntimeContext& context) {
  const std::string table = "NVTX_EVENTS";
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  if (column("start") == "NULL" || column("end") == "NULL") return {};
  const bool has_ids = column("textId") != "NULL" && file.Has("StringIds");
  const std::string text =
      has_ids ? fmt::format("coalesce({}, s.value)", column("text")) : column("text");
  return file.Query(fmt::format("SELECT k.start, k.end, {}, {}, {} FROM {} k {}",
                                column("globalTid"), column("eventType"), text, table,
                                has_ids ? "LEFT JOIN StringIds s ON s.id = k.textId" : ""),
                    [&](sqlite3_stmt* row) -> Result<void> {
                      // 59: pushed and popped, 60: started and ended; marks and open ranges have no
                      // end.
                      const std::int64_t type = IntAt(row, 3).value_or(59);
                      if ((type != 59 && type != 60) || TextAt(row, 4).empty()) {
                        ++context.facts().event_count;
                        ++other_ranges_;
                        return {};
                      }
                      const std::optional<Span> span = SpanOf(row, table, context);
                      if (!span) return {};
                      AddRange(TextAt(row, 4), *span, Thread(IntAt(row, 2), context), context);
                      return context.Flush();
                    });
}

Result<void> NsysReader::ReadAll(NsysExport& file, RuntimeContext& context) {
  RETURN_IF_ERROR(ReadFacts(file, context));
  RETURN_IF_ERROR(ReadKernels(file, context));
  RETURN_IF_ERROR(ReadCopies(file, "CUPTI_ACTIVITY_KIND_MEMCPY", "memcpy", context));
  RETURN_IF_ERROR(ReadCopies(file, "CUPTI_ACTIVITY_KIND_MEMSET", "memset", context));
  RETURN_IF_ERROR(ReadLaunches(file, context));
  return ReadRanges(file, context);
}

Result<bool> NsysReader::Read(RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  facts.kind = "nsys";
  epoch_ns_ = 0;
  threads_.clear();
  pids_.clear();
  durations_ = {};
  without_time_.clear();
  bad_times_.clear();
  other_ranges_ = 0;
  std::string buffer(std::size_t{1} << 20, '\0');
  while (true) {  // for its number of bytes and its hash
    ASSIGN_OR_RETURN(const std::size_t count, context.Read(buffer.data(), buffer.size()));
    if (count == 0) break;
  }
  Result<NsysExport> file = NsysExport::Open(context.input().path);
  const Result<void> done =
      file ? ReadAll(*file, context) : Result<void>(tl::unexpected<Error>(file.error()));
  if (!done &&
      (done.error().code == ErrorCode::kNotATrace || done.error().code == ErrorCode::kIo)) {
    context.Log(
        ImportCode::kBadRuntimeFile,
        fmt::format(
            "{} (an export that is compressed has to be unpacked first); what came before was read",
            done.error().message));
  } else if (!done) {
    return tl::unexpected<Error>(done.error());
  }
  ReportLeftOut(context);
  std::set<std::int64_t> pids;
  for (const auto& [pid, order] : pids_) pids.insert(pid);
  for (const auto& [tid, id] : threads_) pids.insert(PidOf(tid));
  pids.erase(0);
  if (pids.size() == 1) facts.pid = *pids.begin();
  if (pids.size() > 1)
    context.Log(ImportCode::kUnknownRank,
                fmt::format("the export holds {} processes: its rows belong to no single rank",
                            pids.size()));
  return true;
}

}  // namespace

std::unique_ptr<RuntimeReader> MakeNsysReader() { return std::make_unique<NsysReader>(); }

}  // namespace tlparse
