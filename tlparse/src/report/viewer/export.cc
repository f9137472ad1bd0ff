#include "report/viewer/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "report/task_pool.h"
#include "report/viewer/chunk_file.h"
#include "report/viewer/data.h"
#include "report/viewer/page_texts.h"
#include "store/any_rows.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

// Cuts the rows of `sql`, which have `id` and `bytes` and are ordered by id, into blocks of about
// PageTexts::kChunkBytes.
Result<void> AddBlocks(Database& database, std::string_view kind, std::string_view sql,
                       ViewerLayout& layout) {
  std::int64_t bytes = PageTexts::kChunkBytes;  // so that the first row begins a block
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) {
    const std::int64_t id = row.Int("id");
    if (bytes >= PageTexts::kChunkBytes) {
      layout.blocks.push_back({std::string(kind), id, id});
      bytes = 0;
    }
    layout.blocks.back().last_id = id;
    bytes += row.Int("bytes");
  }
  return {};
}

// Blocks of the kind's chunks that hold something: `sql` gives the processes of those. Block 0 is
// that of all others.
Result<void> AddProcessBlocks(Database& database, std::string_view kind, const std::string& sql,
                              ViewerLayout& layout) {
  layout.blocks.push_back({std::string(kind), 0, 0});
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) {
    layout.blocks.push_back({std::string(kind), row.Int("id"), row.Int("id")});
  }
  return {};
}

std::string ProcessesOf(std::int64_t run_id) {
  return fmt::format(
      "(SELECT p.id FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = {})",
      run_id);
}

Result<ViewerLayout> ChooseLayout(Database& database, std::int64_t run_id, const PageTexts& texts) {
  ViewerLayout layout;
  // Envelopes are short but for metrics; to measure each would mean to read it.
  RETURN_IF_ERROR(AddBlocks(
      database, "compile",
      fmt::format(
          "SELECT c.id AS id, 500 + 1500 * (SELECT count(*) FROM compile_record_row m "
          "WHERE m.compile_id = c.id) + 20000 * (SELECT count(*) FROM compilation_metric_row m "
          "WHERE m.compile_id = c.id) AS bytes FROM compile c "
          "WHERE c.process_id IN {} ORDER BY c.id",
          ProcessesOf(run_id)),
      layout));
  RETURN_IF_ERROR(AddBlocks(database, "guards",
                            "SELECT content_id AS id, 150 * count(*) AS bytes "
                            "FROM guard_row GROUP BY content_id ORDER BY content_id",
                            layout));
  RETURN_IF_ERROR(
      AddBlocks(database, "provenance",
                "SELECT g.provenance_content_id AS id, 1000 * count(*) AS bytes "
                "FROM graph g JOIN kernel k ON k.graph_id = g.id "
                "WHERE g.id IN (SELECT min(id) FROM graph WHERE provenance_content_id IS NOT NULL "
                "GROUP BY provenance_content_id) GROUP BY 1 ORDER BY 1",
                layout));
  RETURN_IF_ERROR(AddProcessBlocks(
      database, "events",
      fmt::format("SELECT p.id AS id "
                  "FROM process p WHERE p.id IN {} AND EXISTS (SELECT 1 FROM chromium_event_row "
                  "WHERE record_id BETWEEN p.first_record_id AND p.last_record_id) ORDER BY p.id",
                  ProcessesOf(run_id)),
      layout));
  // If processes are mixed in a file, reading all records between for each of them would take long.
  RETURN_IF_ERROR(AddProcessBlocks(
      database, "process",
      fmt::format("SELECT p.id AS id FROM process p WHERE p.id IN {} "
                  "AND (p.last_record_id - p.first_record_id > 1000 OR EXISTS (SELECT 1 "
                  "FROM record_row r WHERE r.id BETWEEN p.first_record_id AND p.last_record_id "
                  "AND r.compile_id IS NULL AND r.kind_id IS NOT {} AND r.kind_id IS NOT {}) "
                  "OR EXISTS (SELECT 1 FROM issued_collective_row i "
                  "WHERE i.record_id BETWEEN p.first_record_id AND p.last_record_id)) "
                  "ORDER BY p.id",
                  ProcessesOf(run_id), int{kTextStr}, int{kTextChromiumEvent}),
      layout));
  layout.text_prefix_digits = texts.prefix_digits();
  layout.text_alone_bytes = PageTexts::kAloneBytes;
  return layout;
}

Result<void> WritePage(const Directory& directory, std::string_view header_html) {
  constexpr std::string_view kBody = "<body>";
  const std::string_view page = ViewerPage();
  const std::size_t body = page.find(kBody);
  const std::size_t top = body == page.npos ? 0 : body + kBody.size();
  FileWriter file;
  RETURN_IF_ERROR(file.Open(directory, "index.html"));
  file.Append(page.substr(0, top));
  file.Append(header_html);
  file.Append(page.substr(top));
  return file.Close();
}

}  // namespace

Result<void> AddViewerTasks(TaskPool& pool, Database& database, const Directory& directory,
                            std::int64_t run_id, const ReportOptions& options) {
  // Shared by the tasks, which outlive this one.
  struct PreparedPage {
    ViewerData viewer;
    PageTexts texts;
    Directory data;
  };
  if (ViewerPage().empty())
    return Fail(ErrorCode::kNotFound, "this tlparse was built without the viewer");
  ASSIGN_OR_RETURN(ViewerData viewer, ViewerData::Open(database, run_id));
  ASSIGN_OR_RETURN(PageTexts texts, PageTexts::Find(database, run_id));
  ASSIGN_OR_RETURN(const ViewerLayout layout, ChooseLayout(database, run_id, texts));
  viewer.set_layout(layout);
  viewer.set_watched({.live = {}, .world_size = options.world_size});
  ASSIGN_OR_RETURN(Directory data, directory.Child("data"));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, viewer.ChunkNames());
  const auto page = std::make_shared<const PreparedPage>(
      PreparedPage{std::move(viewer), std::move(texts), std::move(data)});
  for (const std::string& name : names) {
    pool.AddForLater(LoadStep::kPage, [page, name](Database& connection) -> Result<void> {
      ASSIGN_OR_RETURN(const std::string json, page->viewer.On(connection).Chunk(name));
      return ChunkFile(page->data).Write(name, json);
    });
  }
  for (std::int64_t group = 0; group < page->texts.group_count(); ++group) {
    pool.AddForLater(LoadStep::kPage, [page, group](Database& connection) {
      return page->texts.WriteGroup(connection, page->data, group);
    });
  }
  return WritePage(directory, options.custom_header_html);
}

}  // namespace tlparse
