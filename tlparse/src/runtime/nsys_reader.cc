// nsys export --type sqlite: kernels, copies, the calls that launched them, and NVTX ranges. Its
// tables are made only where there is something to hold, and older exports lack columns: each is
// looked for before it is read. The database is opened read-only, its schema untrusted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "rows/profile.h"
#include "runtime/nsys_export.h"
#include "runtime/reader.h"

namespace tlparse {
namespace {

// "aten::mm, seq = 12, op_id = 7" → the name and 12.
std::optional<std::int64_t> TakeSequence(std::string_view& text) {
  const std::size_t at = text.find(", seq = ");
  std::optional<std::int64_t> sequence;
  if (at != text.npos) {
    std::int64_t number = 0;
    const std::string_view digits = text.substr(at + 8);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc())
      sequence = number;
    text = text.substr(0, at);
  }
  if (const std::size_t op = text.find(", op_id = "); op != text.npos) text = text.substr(0, op);
  return sequence;
}

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
  Result<void> ReadAll(NsysExport& file, RuntimeContext& context);
  Result<void> ReadFacts(NsysExport& file, RuntimeContext& context);
  Result<void> ReadKernels(NsysExport& file, RuntimeContext& context);
  Result<void> ReadCopies(NsysExport& file, const std::string& table, const char* kind,
                          RuntimeContext& context);
  Result<void> ReadLaunches(NsysExport& file, RuntimeContext& context);
  Result<void> ReadRanges(NsysExport& file, RuntimeContext& context);
  void AddRange(std::string_view text, std::int64_t start_ns, std::int64_t duration_ns,
                std::optional<std::int64_t> thread, RuntimeContext& context);
  std::optional<std::int64_t> Thread(std::optional<std::int64_t> global_tid,
                                     RuntimeContext& context);
  // Numbers of correlation count per process: those of a second process are kept apart.
  std::optional<std::int64_t> Correlation(std::optional<std::int64_t> number,
                                          std::optional<std::int64_t> global_id);
  // Adds a moment of the file to the stretch that it measured; the start in nanoseconds since the
  // epoch.
  std::int64_t Start(std::int64_t start_ns, std::int64_t duration_ns, RuntimeContext& context);

  std::int64_t epoch_ns_ = 0;
  std::map<std::int64_t, std::int64_t> threads_;  // by globalTid
  std::map<std::int64_t, std::int64_t> pids_;     // of device work, by their order
};

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

std::int64_t NsysReader::Start(std::int64_t start_ns, std::int64_t duration_ns,
                               RuntimeContext& context) {
  ProfileFacts& facts = context.facts();
  const std::int64_t at_ns = epoch_ns_ + start_ns;
  facts.start_ns = std::min(facts.start_ns.value_or(at_ns), at_ns);
  facts.end_ns = std::max(facts.end_ns.value_or(at_ns + duration_ns), at_ns + duration_ns);
  ++facts.kept_count;
  return at_ns;
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
                                 epoch_ns_ = sqlite3_column_int64(row, 0);
                                 has_epoch = true;
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
        ++context.facts().event_count;
        if (!IntAt(row, 0) || !IntAt(row, 1)) return {};
        const std::int64_t duration_ns = *IntAt(row, 1) - *IntAt(row, 0);
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
                            .start_ns = Start(*IntAt(row, 0), duration_ns, context),
                            .duration_ns = duration_ns};
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
        ++context.facts().event_count;
        if (!IntAt(row, 0) || !IntAt(row, 1)) return {};
        const std::int64_t duration_ns = *IntAt(row, 1) - *IntAt(row, 0);
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
                           .start_ns = Start(*IntAt(row, 0), duration_ns, context),
                           .duration_ns = duration_ns};
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
        ++context.facts().event_count;
        if (!IntAt(row, 0) || !IntAt(row, 1)) return {};
        const std::int64_t duration_ns = *IntAt(row, 1) - *IntAt(row, 0);
        RowBatch& rows = context.rows();
        DeviceLaunchRow launch{
            .id = context.NextId(rows.TableOf<DeviceLaunchRow>()),
            .profile_id = context.profile_id(),
            .name_id = context.Text(TextAt(row, 4)),
            .start_ns = Start(*IntAt(row, 0), duration_ns, context),
            .duration_ns = duration_ns,
            .correlation = Correlation(IntAt(row, 3), IntAt(row, 2)).value_or(0)};
        launch.thread_id = Thread(IntAt(row, 2), context);
        rows.Add(launch);
        return context.Flush();
      });
}

void NsysReader::AddRange(std::string_view text, std::int64_t start_ns, std::int64_t duration_ns,
                          std::optional<std::int64_t> thread, RuntimeContext& context) {
  RowBatch& rows = context.rows();
  const std::optional<std::int64_t> sequence = TakeSequence(text);
  constexpr std::string_view kCall = "## Call CompiledFxGraph ",
                             kRegion = "Torch-Compiled Region: ", kStep = "ProfilerStep#";
  std::optional<CompiledSliceKind> slice;
  std::string_view name = text;
  if (text.starts_with(kCall)) {
    slice = CompiledSliceKind::kGraphCall;
    name = text.substr(kCall.size());
    name = name.substr(0, name.find(' '));
    if (name == "None") name = {};
  } else if (text.starts_with(kRegion)) {
    slice = CompiledSliceKind::kRegion;
    name = text.substr(kRegion.size());
  } else if (text == "CompiledFunction" || text == "CompiledFunctionBackward") {
    slice =
        text == "CompiledFunction" ? CompiledSliceKind::kFunction : CompiledSliceKind::kBackward;
    name = {};
  }
  if (slice) {
    CompiledSliceRow row{.id = context.NextId(rows.TableOf<CompiledSliceRow>()),
                         .profile_id = context.profile_id(),
                         .kind = *slice,
                         .start_ns = start_ns,
                         .duration_ns = duration_ns};
    row.name_id = context.OptionalText(name);
    row.thread_id = thread;
    row.sequence_number = sequence;
    rows.Add(row);
  } else if (text.find("::") != text.npos) {
    OpRunRow row{.id = context.NextId(rows.TableOf<OpRunRow>()),
                 .profile_id = context.profile_id(),
                 .name_id = context.Text(text),
                 .start_ns = start_ns,
                 .duration_ns = duration_ns};
    row.thread_id = thread;
    row.sequence_number = sequence;
    rows.Add(row);
  } else {
    AnnotationRow row{.id = context.NextId(rows.TableOf<AnnotationRow>()),
                      .profile_id = context.profile_id(),
                      .name_id = context.Text(text),
                      .start_ns = start_ns,
                      .duration_ns = duration_ns};
    row.thread_id = thread;
    std::int64_t step = 0;
    if (text.starts_with(kStep) &&
        std::from_chars(text.data() + kStep.size(), text.data() + text.size(), step).ec ==
            std::errc())
      row.step = step;
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
                      ++context.facts().event_count;
                      // 59: pushed and popped, 60: started and ended; marks and open ranges have no
                      // end.
                      const std::int64_t type = IntAt(row, 3).value_or(59);
                      if (!IntAt(row, 0) || !IntAt(row, 1) || (type != 59 && type != 60) ||
                          TextAt(row, 4).empty())
                        return {};
                      const std::int64_t duration_ns = *IntAt(row, 1) - *IntAt(row, 0);
                      AddRange(TextAt(row, 4), Start(*IntAt(row, 0), duration_ns, context),
                               duration_ns, Thread(IntAt(row, 2), context), context);
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
