// One reader of exports of nsys. Internal to it (see reader.h); nsys_device.cc has the tables of
// device work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/common/measured_span.h"
#include "inputs/nsys/export.h"
#include "inputs/reader.h"
#include "rows/profile.h"

namespace tlparse::nsys {

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
  // The rows of one process (0: that name none), or all.
  Result<void> ReadRows(NsysExport& file, std::optional<std::int64_t> pid, RuntimeContext& context);
  Result<void> ReadAll(NsysExport& file, RuntimeContext& context);
  // The processes of the export's rows, ascending, 0 for rows that name none; empty if tables do not
  // name them.
  std::vector<std::int64_t> ProcessesOf(NsysExport& file) const;
  // " WHERE …" or "": the rows of table `k` that are of the process that is read now.
  std::string OfProcess(NsysExport& file, const std::string& table) const;
  Result<void> ReadFacts(NsysExport& file, RuntimeContext& context);
  Result<void> ReadKernels(NsysExport& file, RuntimeContext& context);
  Result<void> ReadCopies(NsysExport& file, const std::string& table, const char* kind,
                          RuntimeContext& context);
  Result<void> ReadGraphs(NsysExport& file, RuntimeContext& context);
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
  Result<void> LogDamage(const Result<void>& done, RuntimeContext& context) const;
  void StartPart();
  void ReportLeftOut(RuntimeContext& context) const;
  Result<void> ReportUnread(NsysExport& file, RuntimeContext& context) const;

  std::int64_t epoch_ns_ = 0;
  std::optional<std::int64_t> pid_;  // whose rows are read now; nullopt: all
  DurationSum durations_;
  std::map<std::string, std::int64_t> without_time_, bad_times_;  // rows, by table
  std::int64_t other_ranges_ = 0;
  std::int64_t launches_ = 0, launches_ns_ = 0;
  std::map<std::int64_t, std::int64_t> threads_;  // by globalTid
  std::map<std::int64_t, std::int64_t> pids_;     // of device work, by their order
};

}  // namespace tlparse::nsys
