#include "report/viewer/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "queries/report/viewer/export.h"
#include "report/task_pool.h"
#include "report/viewer/data.h"
#include "store/any_rows.h"
#include "store/text_pool.h"
#include "store/value_pieces.h"

namespace tlparse {
namespace {

// A chunk file is read and parsed as a whole before the page continues: half a megabyte takes a few
// milliseconds.
constexpr std::int64_t kTextBlockBytes = 512 << 10;
constexpr std::int64_t kTextAloneBytes = 256 << 10;

// Scripts that hand their document to the page: fetch() is refused on file://, <script src> is not.
Result<void> OpenChunk(const Directory& data, FileWriter& file, std::string_view name) {
  std::string file_name(name);
  std::replace(file_name.begin(), file_name.end(), '/', '-');
  RETURN_IF_ERROR(file.Open(data, file_name + ".js"));
  file.Append(fmt::format("tlparse_chunk(\"{}\",", name));
  return {};
}

Result<void> CloseChunk(FileWriter& file) {
  file.Append(");\n");
  return file.Close();
}

Result<void> WriteChunk(const Directory& data, FileWriter& file, std::string_view name,
                        std::string_view json) {
  RETURN_IF_ERROR(OpenChunk(data, file, name));
  file.Append(json);
  return CloseChunk(file);
}

void BeginTexts(ChunkWriter& writer) {
  writer.BeginTable("text", {"size_bytes", "is_binary"}, {"hash", "content"});
}

// `row`: of payload_row, with the column is_binary.
void AddText(const AnyRow& row, std::string_view content, ChunkWriter& writer) {
  writer.AddNumber(row.Int("size_bytes"));
  writer.AddNumber(row.Int("is_binary"));
  writer.AddNewText(row.Text("hash"));
  writer.AddNewText(content);
}

// Cuts the rows of `sql`, which have `id` and `bytes` and are ordered by id, into blocks of about
// kTextBlockBytes.
Result<void> AddBlocks(Database& database, std::string_view kind, std::string_view sql,
                       ViewerLayout& layout) {
  std::int64_t bytes = kTextBlockBytes;  // so that the first row begins a block
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) {
    const std::int64_t id = row.Int("id");
    if (bytes >= kTextBlockBytes) {
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

// Payloads that the page shows as texts: those of Chromium events are in the chunks args/.
struct TextSet {
  std::vector<bool> has;         // by payload id
  std::int64_t small_bytes = 0;  // of those that share files
};

Result<TextSet> FindTexts(Database& database, std::int64_t run_id) {
  TextSet texts;
  ASSIGN_OR_RETURN(const std::int64_t last_id,
                   database.QueryInt("SELECT max(id) FROM payload_row"));
  texts.has.resize(static_cast<std::size_t>(last_id) + 1);
  FOR_EACH_ROW(
      const AnyRow& row,
      AnyRows::Of(database, fmt::format("SELECT payload_id FROM record_row "
                                        "WHERE payload_id IS NOT NULL AND kind_id IS NOT {} "
                                        "AND process_id IN {}",
                                        int{kTextChromiumEvent}, ProcessesOf(run_id)))) {
    texts.has[static_cast<std::size_t>(row.Int("payload_id"))] = true;
  }
  FOR_EACH_ROW(const PayloadSize& row, Query<PayloadSize>(database)) {
    if (texts.has[static_cast<std::size_t>(row.id)] && row.size_bytes < kTextAloneBytes)
      texts.small_bytes += row.size_bytes;
  }
  return texts;
}

Result<ViewerLayout> ChooseLayout(Database& database, std::int64_t run_id, const TextSet& texts) {
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
  layout.text_prefix_digits = 1;
  for (std::int64_t group = texts.small_bytes / 16; group > kTextBlockBytes; group /= 16)
    ++layout.text_prefix_digits;
  layout.text_alone_bytes = kTextAloneBytes;
  return layout;
}

// The chunk of one large text, whose content is never in memory as a whole. `row`: as in AddText.
Result<void> WriteLargeText(Database& database, std::int64_t payload_id, const AnyRow& row,
                            const Directory& data, FileWriter& file) {
  const std::string name = "text/" + std::string(row.Text("hash"));
  ChunkWriter writer;
  BeginTexts(writer);
  AddText(row, "", writer);
  const std::string json = writer.Finish();
  const std::size_t content = json.find("\"\"") + 1;
  RETURN_IF_ERROR(OpenChunk(data, file, name));
  file.Append(std::string_view(json).substr(0, content));
  std::string escaped;
  RETURN_IF_ERROR(
      ReadInPieces(database, "payload_row", "content", payload_id, [&](std::string_view piece) {
        escaped.clear();
        AppendJsonString(piece, escaped);
        const std::string_view quoted = escaped;
        file.Append(quoted.substr(1, quoted.size() - 2));
      }));
  file.Append(std::string_view(json).substr(content));
  return CloseChunk(file);
}

// The texts whose hashes begin with `prefix`: one file for all, and one for each large text.
Result<void> WriteTexts(Database& database, const TextSet& texts, const Directory& data,
                        const std::string& prefix) {
  // Text columns are read where they are asked for: not the content of a large text.
  AnyRows payloads = AnyRows::Of(database,
                                 "SELECT size_bytes, typeof(content) = 'blob' AS is_binary, "
                                 "hash, content FROM payload_row WHERE id = ?");
  const std::string end = prefix + "g";  // behind every hex digit
  FileWriter file;
  ChunkWriter group;
  bool has_group = false;
  FOR_EACH_ROW(const HashWithPrefix& found,
               Query<HashWithPrefix>(database, {.first = prefix, .end = end})) {
    if (!texts.has[static_cast<std::size_t>(found.id)]) continue;
    if (!payloads.has_error()) {
      payloads.statement().Reset();
      payloads.statement().Bind(1, found.id);
    }
    if (!payloads.Next()) {
      if (const std::unique_ptr<Error> error = payloads.TakeError())
        return tl::unexpected<Error>(std::move(*error));
      continue;
    }
    const AnyRow& row = payloads.row();
    if (row.Int("size_bytes") < kTextAloneBytes) {
      if (!has_group) BeginTexts(group);
      AddText(row, row.Text("content"), group);
      has_group = true;
    } else {
      RETURN_IF_ERROR(WriteLargeText(database, found.id, row, data, file));
    }
  }
  return has_group ? WriteChunk(data, file, "text/" + prefix, group.Finish()) : Result<void>();
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
    TextSet texts;
    Directory data;
  };
  if (ViewerPage().empty())
    return Fail(ErrorCode::kNotFound, "this tlparse was built without the viewer");
  ASSIGN_OR_RETURN(ViewerData viewer, ViewerData::Open(database, run_id));
  ASSIGN_OR_RETURN(TextSet texts, FindTexts(database, run_id));
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
      FileWriter file;
      return WriteChunk(page->data, file, name, json);
    });
  }
  const int digits = layout.text_prefix_digits;
  for (std::int64_t group = 0; group < std::int64_t{1} << (4 * digits); ++group) {
    pool.AddForLater(LoadStep::kPage,
                     [page, prefix = fmt::format("{:0{}x}", group, digits)](Database& connection) {
                       return WriteTexts(connection, page->texts, page->data, prefix);
                     });
  }
  return WritePage(directory, options.custom_header_html);
}

}  // namespace tlparse
