#include "report/viewer/memory.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "facts/memory/over_time.h"
#include "queries/facts/memory/memory.h"
#include "queries/facts/memory/steps.h"
#include "report/viewer/chunk.h"

namespace tlparse {
namespace {

// Rows of the table of sites, in the order in which holders name them.
class SiteRows {
 public:
  std::int64_t RowOf(const MemoryHolder& holder) {
    const auto [entry, is_new] = rows_.try_emplace({holder.site_id, holder.is_before},
                                                   static_cast<std::int64_t>(sites_.size()));
    if (is_new) sites_.push_back(entry->first);
    return entry->second;
  }

  Result<void> Write(Database& database, ChunkWriter& writer) const {
    writer.BeginTable(
        "site", {"line", "compile_id", "graph_id"},
        {"category", "file", "function", "label", "direction", "kernel", "nodes", "reason"});
    for (const auto& [id, is_before] : sites_) {
      ASSIGN_OR_RETURN(const FirstRow<SiteOfMemory> site,
                       First(KeptQuery<SiteOfMemory>(database, {.site_id = id})));
      writer.AddNumber(site ? site->line : std::nullopt);
      writer.AddNumber(site ? site->compile_id : std::nullopt);
      writer.AddNumber(site ? site->graph_id : std::nullopt);
      if (!site) {
        writer.AddText(Name(MemoryCategory::kUnknown));
        for (int i = 0; i < 6; ++i) writer.AddText(std::nullopt);
        writer.AddText(is_before ? "allocated before the recording began"
                                 : "no stack was recorded");
        continue;
      }
      for (const std::string_view text : {site->category, site->file, site->function, site->label,
                                          site->direction, site->kernel, site->nodes})
        writer.AddText(OptionalText(text));
      // As `tlparse memory` says it.
      const bool has_both = !site->op.empty() && !site->join_note.empty();
      writer.AddText(OptionalText(fmt::format("{}{}{}", has_both ? site->op : std::string_view(),
                                              has_both ? ": " : "", site->join_note)));
    }
    return {};
  }

 private:
  std::map<std::pair<std::int64_t, bool>, std::int64_t> rows_;
  std::vector<std::pair<std::int64_t, bool>> sites_;
};

void AddPoints(const std::vector<MemoryPoint>& points, std::int64_t start_ns, ChunkWriter& writer) {
  static_assert(static_cast<std::size_t>(MemoryCategory::kUnknown) + 1 == kMemoryCategories);
  std::vector<std::string_view> columns = {"ordinal", "time_us", "size_bytes"};
  for (std::size_t i = 0; i < kMemoryCategories; ++i)
    columns.push_back(Name(static_cast<MemoryCategory>(i)));
  writer.BeginTable("point", columns, {});
  for (const MemoryPoint& point : points) {
    writer.AddNumber(point.ordinal);
    if (point.time_ns)
      writer.AddReal(static_cast<double>(*point.time_ns - start_ns) / 1e3);
    else
      writer.AddNumber(std::nullopt);
    writer.AddNumber(point.size_bytes);
    for (const std::int64_t bytes : point.categories) writer.AddNumber(bytes);
  }
}

}  // namespace

Result<std::string> MemoryChunk(Database& database, std::int64_t run_id, std::int64_t snapshot_id) {
  ASSIGN_OR_RETURN(
      const std::int64_t found,
      database.QueryInt(fmt::format("SELECT id FROM memory_snapshot WHERE run_id = {} AND id = {}",
                                    run_id, snapshot_id)));
  if (found == 0)
    return Fail(ErrorCode::kNotFound,
                fmt::format("the run has no recording {} of an allocator", snapshot_id));
  ASSIGN_OR_RETURN(const std::vector<MemoryPoint> points,
                   ReadMemoryOverTime(database, snapshot_id));
  const std::int64_t start_ns = points.empty() ? 0 : points.front().time_ns.value_or(0);
  ChunkWriter writer;
  AddPoints(points, start_ns, writer);
  SiteRows sites;
  writer.BeginTable("holder", {"point", "site", "size_bytes", "allocations"}, {});
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const MemoryHolder& holder : points[i].holders) {
      writer.AddNumber(static_cast<std::int64_t>(i));
      writer.AddNumber(sites.RowOf(holder));
      writer.AddNumber(holder.size_bytes);
      writer.AddNumber(holder.allocations);
    }
  }
  RETURN_IF_ERROR(sites.Write(database, writer));
  writer.BeginTable("step", {"step", "end_us"}, {});
  FOR_EACH_ROW(const StepOfMemory& step,
               Query<StepOfMemory>(database, {.snapshot_id = snapshot_id})) {
    writer.AddNumber(step.step);
    writer.AddReal(static_cast<double>(step.end_ns - start_ns) / 1e3);
  }
  writer.BeginTable("line", {"line", "size_bytes", "allocations"}, {"file"});
  FOR_EACH_ROW(const LineAtPeak& line, Query<LineAtPeak>(database, {.snapshot_id = snapshot_id})) {
    writer.AddNumber(line.line);
    writer.AddNumber(line.size_bytes);
    writer.AddNumber(line.allocations);
    writer.AddText(line.file);
  }
  return writer.Finish();
}

}  // namespace tlparse
