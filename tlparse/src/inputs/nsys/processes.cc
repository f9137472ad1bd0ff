// The processes of an nsys export: each is a profile.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "inputs/nsys/reader.h"

namespace tlparse::nsys {
namespace {

// The tables with rows of processes, and the columns that name these.
constexpr std::pair<const char*, const char*> kProcessColumns[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"},  {"CUPTI_ACTIVITY_KIND_MEMCPY", "globalPid"},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "globalPid"},  {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "globalPid"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"}, {"NVTX_EVENTS", "globalTid"}};

std::string PidColumn(const char* column) {
  return fmt::format("coalesce(k.{} >> 24 & 16777215, 0)", column);
}

}  // namespace

std::string NsysReader::OfProcess(NsysExport& file, const std::string& table) const {
  for (const auto& [name, column] : kProcessColumns) {
    if (pid_ && table == name && file.Column(table, column, "k") != "NULL")
      return fmt::format(" WHERE {} = {}", PidColumn(column), *pid_);
  }
  return {};
}

std::vector<std::int64_t> NsysReader::ProcessesOf(NsysExport& file) const {
  std::set<std::int64_t> pids;
  for (const auto& [table, column] : kProcessColumns) {
    if (!file.Has(table)) continue;
    if (file.Column(table, column, "k") == "NULL") return {};
    // Damage is reported when the rows are read.
    static_cast<void>(file.Query(
        fmt::format("SELECT DISTINCT {} FROM {} k LIMIT 10000", PidColumn(column), table),
        [&](sqlite3_stmt* row) -> Result<void> {
          pids.insert(IntAt(row, 0).value_or(0));
          return {};
        }));
  }
  return {pids.begin(), pids.end()};
}

Result<void> NsysReader::ReadRows(NsysExport& file, std::optional<std::int64_t> pid,
                                  RuntimeContext& context) {
  pid_ = pid;
  context.facts().kind = "nsys";
  RETURN_IF_ERROR(ReadFacts(file, context));
  RETURN_IF_ERROR(ReadKernels(file, context));
  RETURN_IF_ERROR(ReadCopies(file, "CUPTI_ACTIVITY_KIND_MEMCPY", "memcpy", context));
  RETURN_IF_ERROR(ReadCopies(file, "CUPTI_ACTIVITY_KIND_MEMSET", "memset", context));
  RETURN_IF_ERROR(ReadGraphs(file, context));
  RETURN_IF_ERROR(ReadLaunches(file, context));
  return ReadRanges(file, context);
}

// An error of the file is a row of import_log; others are returned.
Result<void> NsysReader::LogDamage(const Result<void>& done, RuntimeContext& context) const {
  if (done || (done.error().code != ErrorCode::kNotATrace && done.error().code != ErrorCode::kIo))
    return done;
  const std::int64_t kept = context.facts().kept_count;
  context.Log(ImportCode::kBadRuntimeFile,
              fmt::format("{}; {} before it {} kept", done.error().message, Count(kept, "row"),
                          kept == 1 ? "was" : "were"));
  return {};
}

// Each process of the export becomes a profile, with the rank of that process.
Result<void> NsysReader::ReadAll(NsysExport& file, RuntimeContext& context) {
  constexpr std::size_t kMostProcesses = 1024;
  const std::vector<std::int64_t> pids = ProcessesOf(file);
  const auto is_named = [](std::int64_t pid) { return pid != 0; };
  const auto named = std::count_if(pids.begin(), pids.end(), is_named);
  if (named < 2 || pids.size() > kMostProcesses) {
    if (named == 1) context.facts().pid = *std::find_if(pids.begin(), pids.end(), is_named);
    RETURN_IF_ERROR(ReadRows(file, std::nullopt, context));
    if (named > 1 || pids_.size() > 1)
      context.Log(ImportCode::kUnknownRank,
                  "the export is of several processes: its rows belong to no single rank");
    return ReportUnread(file, context);
  }
  for (const std::int64_t pid : pids) {
    ReportLeftOut(context);
    StartPart();
    RETURN_IF_ERROR(context.BeginPart(pid == 0 ? "no pid" : fmt::format("pid {}", pid)));
    if (pid != 0) context.facts().pid = pid;
    RETURN_IF_ERROR(LogDamage(ReadRows(file, pid, context), context));
  }
  return ReportUnread(file, context);
}

}  // namespace tlparse::nsys
