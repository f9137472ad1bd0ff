#include "report/viewer/place_link.h"

#include <algorithm>
#include <string>

#include "base/json_writer.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

// Of a finding that names the same compile of many ranks.
constexpr std::size_t kMostCompiles = 8;

// In the order in which they are tried. Parameters: the compiles as a JSON list, the file, the
// line. `w.key` is the position in the list.
struct PlaceView {
  std::string_view name;
  const char* sql;
};
constexpr PlaceView kViews[] = {
    // The innermost line of a stack is the one that the pane of Python lines shows.
    {"provenance",
     "SELECT g.id AS graph_id, g.compile_id "
     "FROM json_each(?1) w CROSS JOIN graph g ON g.compile_id = w.value "
     "JOIN kernel_row k ON k.content_id = g.provenance_content_id "
     "JOIN kernel_source_row s ON s.kernel_id = k.id JOIN text_row f ON f.id = s.file_id "
     "WHERE f.text = ?2 AND s.line = ?3 AND NOT EXISTS (SELECT 1 FROM kernel_source_row t "
     "WHERE t.kernel_id = s.kernel_id AND t.stack_ordinal = s.stack_ordinal "
     "AND t.frame_ordinal > s.frame_ordinal) ORDER BY w.key, g.id LIMIT 1"},
    {"text",
     "SELECT o.compile_id, o.record_id, ?3 AS line "
     "FROM json_each(?1) w CROSS JOIN output_code_row o ON o.compile_id = w.value "
     "JOIN text_row t ON t.id = o.path_id WHERE t.text = ?2 ORDER BY w.key, o.record_id LIMIT 1"},
    // The comment above a node names its line.
    {"text",
     "WITH node AS (SELECT t.compile_id, t.record_id, "
     "CAST(p.content AS TEXT) AS content, '# File: ' || ?2 || ':' || ?3 || ' in ' AS comment "
     "FROM json_each(?1) w CROSS JOIN graph_text_row t ON t.compile_id = w.value "
     "JOIN graph_node_row n ON n.content_id = t.content_id JOIN text_row f ON f.id = n.file_id "
     "JOIN record_row r ON r.id = t.record_id JOIN payload_row p ON p.id = r.payload_id "
     "WHERE f.text = ?2 AND n.line = ?3 ORDER BY w.key, t.record_id "
     "LIMIT 1), head AS (SELECT *, substr(content, 1, instr(content, comment)) AS text FROM node) "
     "SELECT compile_id, record_id, "
     "1 + length(text) - length(replace(text, char(10), '')) AS line "
     "FROM head WHERE text <> ''"},
    // Its page shows where it begins, was broken, failed, and which guard's line made it be compiled
    // again.
    {"compile",
     "SELECT c.id AS compile_id FROM json_each(?1) w CROSS JOIN compile c ON c.id = w.value "
     "WHERE (c.file = ?2 AND c.line = ?3) OR EXISTS (SELECT 1 "
     "FROM graph_break_row b JOIN text_row f ON f.id = b.user_file_id "
     "WHERE b.compile_id = c.id AND f.text = ?2 AND b.user_line = ?3) OR EXISTS (SELECT 1 "
     "FROM failure_row b JOIN text_row f ON f.id = b.user_file_id "
     "WHERE b.compile_id = c.id AND f.text = ?2 AND b.user_line = ?3) OR EXISTS (SELECT 1 "
     "FROM recompile_row b JOIN text_row f ON f.id = b.user_file_id "
     "WHERE b.compile_id = c.id AND f.text = ?2 AND b.user_line = ?3) ORDER BY w.key LIMIT 1"},
};

}  // namespace

Result<PlaceLink> FindPlaceLink(Database& database, std::span<const std::int64_t> compiles,
                                const FindingPlace& place) {
  PlaceLink link;
  if (place.file.empty() || place.line <= 0) return link;
  JsonWriter ids;
  ids.BeginArray();
  for (const std::int64_t id : compiles.first(std::min(compiles.size(), kMostCompiles)))
    ids.Int(id);
  ids.EndArray();
  for (const PlaceView& view : kViews) {
    ASSIGN_OR_RETURN(Statement statement, database.Prepare(view.sql));
    statement.Bind(1, std::string_view(ids.text()));
    statement.Bind(2, std::string_view(place.file));
    statement.Bind(3, place.line);
    FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(statement))) {
      link.view = view.name;
      link.graph_id = row.OptionalInt("graph_id");
      link.compile_id = row.OptionalInt("compile_id");
      link.record_id = row.OptionalInt("record_id");
      link.line = row.OptionalInt("line");
      return link;
    }
  }
  return link;
}

}  // namespace tlparse
