// The tables of an nsys export that hold device work, and the calls that queued it.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "inputs/nsys/reader.h"
#include "rows/profile.h"

namespace tlparse::nsys {

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
                  (has_names ? fmt::format("LEFT JOIN StringIds s ON s.id = {}", name) : "") +
                      OfProcess(file, table)),
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
      fmt::format("SELECT {}, {}, {}, {}, {}, {}, {}, {} FROM {} k{}", column("start"),
                  column("end"), column("deviceId"), column("streamId"), column("correlationId"),
                  column("globalPid"), column("bytes"), column("copyKind"), table,
                  OfProcess(file, table)),
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

// Runs of CUDA graphs as a whole (nsys profile --cuda-graph-trace=graph): the export does not have
// the kernels in them.
Result<void> NsysReader::ReadGraphs(NsysExport& file, RuntimeContext& context) {
  const std::string table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
  if (!file.Has(table)) return {};
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  return file.Query(
      fmt::format("SELECT {}, {}, {}, {}, {}, {}, {} FROM {} k{}", column("start"), column("end"),
                  column("deviceId"), column("streamId"), column("correlationId"),
                  column("globalPid"), column("graphId"), table, OfProcess(file, table)),
      [&](sqlite3_stmt* row) -> Result<void> {
        // CUPTI writes 0 for both times where it has none.
        if (IntAt(row, 0) == 0 && IntAt(row, 1) == 0) {
          ++context.facts().event_count;
          ++without_time_[table];
          return {};
        }
        const std::optional<Span> span = SpanOf(row, table, context);
        if (!span) return {};
        RowBatch& rows = context.rows();
        const std::optional<std::int64_t> graph = IntAt(row, 6);
        KernelRunRow run{
            .id = context.NextId(rows.TableOf<KernelRunRow>()),
            .profile_id = context.profile_id(),
            .name_id = context.Text(graph ? fmt::format("CUDA graph {}", *graph) : "CUDA graph"),
            .start_ns = span->start_ns,
            .duration_ns = span->duration_ns};
        run.device = IntAt(row, 2).value_or(-1);
        run.stream = IntAt(row, 3);
        run.correlation = Correlation(IntAt(row, 4), IntAt(row, 5));
        rows.Add(run);
        return context.Flush();
      });
}

// Calls of the runtime that queued what is in the file.
Result<void> NsysReader::ReadLaunches(NsysExport& file, RuntimeContext& context) {
  const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
  std::string queued;
  for (const std::string work : {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                 "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"}) {
    if (file.Column(work, "correlationId", "w") != "NULL")
      queued +=
          fmt::format("{}SELECT correlationId FROM {}", queued.empty() ? "" : " UNION ", work);
  }
  const auto column = [&](const char* name) { return file.Column(table, name, "k"); };
  if (queued.empty() || column("correlationId") == "NULL") return {};
  const bool has_names = file.Has("StringIds") && column("nameId") != "NULL";
  const std::string of_process = OfProcess(file, table);
  return file.Query(
      fmt::format("SELECT {}, {}, {}, {}, {} FROM {} k {}{} {} k.correlationId IN ({})",
                  column("start"), column("end"), column("globalTid"), column("correlationId"),
                  has_names ? "s.value" : "NULL", table,
                  has_names ? "LEFT JOIN StringIds s ON s.id = k.nameId" : "", of_process,
                  of_process.empty() ? "WHERE" : "AND", queued),
      [&](sqlite3_stmt* row) -> Result<void> {
        ++launches_;
        const std::optional<Span> span = SpanOf(row, table, context);
        if (!span) return {};
        launches_ns_ += span->duration_ns;
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

}  // namespace tlparse::nsys
