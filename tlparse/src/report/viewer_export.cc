#include "report/viewer_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/viewer_data.h"

namespace tlparse {
namespace {

// A chunk file is read and parsed in one go before the page can go on: half a megabyte takes a few
// milliseconds.
constexpr std::int64_t kBlockBytes = 512 << 10;
constexpr std::int64_t kTextAloneBytes = 256 << 10;

// Scripts that hand their document to the page: fetch() is refused on file://, <script src> is not.
Result<void> WriteChunk(const Directory& data, FileWriter& file, std::string_view name,
                        std::string_view json) {
  std::string file_name(name);
  std::replace(file_name.begin(), file_name.end(), '/', '-');
  RETURN_IF_ERROR(file.Open(data, file_name + ".js"));
  file.Append(fmt::format("tlparse_chunk(\"{}\",", name));
  file.Append(json);
  file.Append(");\n");
  return file.Close();
}

// Cuts the rows (id, bytes) of `sql`, ordered by id, into blocks of about kBlockBytes.
Result<void> AddBlocks(Database& database, std::string_view kind, std::string_view sql,
                       ViewerLayout& layout) {
  ASSIGN_OR_RETURN(Statement statement, database.Prepare(sql));
  std::int64_t bytes = kBlockBytes;  // so that the first row begins a block
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) return {};
    const std::int64_t id = statement.Int(0);
    if (bytes >= kBlockBytes) {
      layout.blocks.push_back({std::string(kind), id, id});
      bytes = 0;
    }
    layout.blocks.back().last_id = id;
    bytes += statement.Int(1);
  }
}

std::string ProcessesOf(std::int64_t run_id) {
  return fmt::format(
      "(SELECT p.id FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = {})",
      run_id);
}

// Payloads that the page shows as texts: those of Chromium events are in the chunks args/.
std::string TextsOf(std::int64_t run_id) {
  return fmt::format(
      "(SELECT payload_id FROM record WHERE payload_id IS NOT NULL AND kind IS NOT 'chromium_event'"
      " AND process_id IN {})",
      ProcessesOf(run_id));
}

Result<ViewerLayout> ChooseLayout(Database& database, std::int64_t run_id) {
  ViewerLayout layout;
  RETURN_IF_ERROR(AddBlocks(
      database, "compile",
      fmt::format(
          "SELECT c.id, coalesce(b.bytes, 0) + 500 FROM compile c LEFT JOIN (SELECT compile_id,"
          " sum(length(envelope)) + 200 * count(*) AS bytes FROM record WHERE kind IS NOT "
          "'chromium_event'"
          " GROUP BY compile_id) b ON b.compile_id = c.id"
          " WHERE c.process_id IN {} ORDER BY c.id",
          ProcessesOf(run_id)),
      layout));
  RETURN_IF_ERROR(AddBlocks(database, "guards",
                            "SELECT content_id, 150 * count(*) FROM guard WHERE record_id IN "
                            "(SELECT min(record_id) FROM guard_use"
                            " GROUP BY content_id) GROUP BY content_id ORDER BY content_id",
                            layout));
  RETURN_IF_ERROR(
      AddBlocks(database, "provenance",
                "SELECT g.provenance_content_id, 1000 * count(*) FROM graph g JOIN kernel k ON "
                "k.graph_id = g.id"
                " WHERE g.id IN (SELECT min(id) FROM graph WHERE provenance_content_id IS NOT NULL"
                " GROUP BY provenance_content_id) GROUP BY 1 ORDER BY 1",
                layout));
  ASSIGN_OR_RETURN(const std::int64_t bytes,
                   database.QueryInt(fmt::format(
                       "SELECT sum(size_bytes) FROM payload WHERE size_bytes < {} AND id IN {}",
                       kTextAloneBytes, TextsOf(run_id))));
  layout.text_prefix_digits = 1;
  for (std::int64_t group = bytes / 16; group > kBlockBytes; group /= 16)
    ++layout.text_prefix_digits;
  layout.text_alone_bytes = kTextAloneBytes;
  return layout;
}

// All texts of the run in the order of their hashes: one file per prefix, and one for each large
// text.
class TextFiles {
 public:
  TextFiles(const Directory& data, FileWriter& file, const ViewerLayout& layout)
      : data_(data), file_(file), layout_(layout) {}

  Result<void> Add(Statement& row) {
    const std::string hash(row.Text(0));
    if (row.Int(2) >= layout_.text_alone_bytes) {
      ChunkWriter alone;
      AddRow(alone, true, row);
      return WriteChunk(data_, file_, "text/" + hash, alone.Finish());
    }
    const std::string prefix = hash.substr(0, static_cast<std::size_t>(layout_.text_prefix_digits));
    if (prefix != prefix_) RETURN_IF_ERROR(Flush());
    AddRow(group_, prefix_.empty(), row);
    prefix_ = prefix;
    return {};
  }

  Result<void> Flush() {
    if (prefix_.empty()) return {};
    const std::string name = "text/" + prefix_;
    prefix_.clear();
    return WriteChunk(data_, file_, name, group_.Finish());
  }

 private:
  static void AddRow(ChunkWriter& writer, bool is_first, Statement& row) {
    if (is_first) writer.BeginTable("text", {"size_bytes", "is_binary"}, {"hash", "content"});
    writer.AddNumber(row.Int(2));
    writer.AddNumber(row.Int(3));
    writer.AddText(row.Text(0));
    writer.AddText(row.Text(1));
  }

  const Directory& data_;
  FileWriter& file_;
  const ViewerLayout& layout_;
  ChunkWriter group_;
  std::string prefix_;  // of what group_ holds
};

Result<void> WriteTexts(Database& database, std::int64_t run_id, const Directory& data,
                        FileWriter& file, const ViewerLayout& layout) {
  TextFiles texts(data, file, layout);
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare(fmt::format(
                       "SELECT hash, content, size_bytes, typeof(content) = 'blob' FROM payload"
                       " WHERE id IN {} ORDER BY hash",
                       TextsOf(run_id))));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return texts.Flush();
    RETURN_IF_ERROR(texts.Add(rows));
  }
}

}  // namespace

Result<void> WriteViewer(Database& database, const Directory& directory,
                         std::optional<std::int64_t> run_id) {
  if (ViewerPage().empty())
    return Fail(ErrorCode::kNotFound, "this tlparse was built without the viewer");
  ASSIGN_OR_RETURN(ViewerData viewer, ViewerData::Open(database, run_id));
  ASSIGN_OR_RETURN(ViewerLayout layout, ChooseLayout(database, viewer.run_id()));
  viewer.set_layout(layout);
  FileWriter file;
  ASSIGN_OR_RETURN(const Directory data, directory.Child("data"));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, viewer.ChunkNames());
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::string json, viewer.Chunk(name));
    RETURN_IF_ERROR(WriteChunk(data, file, name, json));
  }
  RETURN_IF_ERROR(WriteTexts(database, viewer.run_id(), data, file, layout));
  RETURN_IF_ERROR(file.Open(directory, "index.html"));
  file.Append(ViewerPage());
  return file.Close();
}

}  // namespace tlparse
