#include "report/viewer_tables.h"

#include <algorithm>
#include <utility>

namespace tlparse {
namespace {

constexpr std::string_view kPreamble =
    "WITH RECURSIVE run_process(id) AS (SELECT p.id FROM process p JOIN log_file f ON f.id = "
    "p.log_file_id"
    " WHERE f.run_id = :run),"
    " run_compile(id) AS (SELECT id FROM compile WHERE process_id IN run_process),"
    " used_frame(id) AS (SELECT value FROM json_each(:stacks) UNION"
    " SELECT s.parent_id FROM used_frame u JOIN stack_frame s ON s.id = u.id"
    " WHERE s.parent_id IS NOT NULL)\n";

// In the order in which the page's data is written: what takes long first.
constexpr std::pair<std::string_view, ChunkRange> kChunks[] = {
    {"index", ChunkRange::kNone},      {"compiles", ChunkRange::kNone},
    {"problems", ChunkRange::kNone},   {"graphs", ChunkRange::kNone},
    {"kernels", ChunkRange::kNone},    {"compile", ChunkRange::kCompiles},
    {"process", ChunkRange::kProcess}, {"guards", ChunkRange::kItem},
    {"provenance", ChunkRange::kItem}, {"cache", ChunkRange::kNone},
    {"sets", ChunkRange::kNone},       {"components", ChunkRange::kPer4096},
    {"schedules", ChunkRange::kNone},  {"events", ChunkRange::kProcess},
    {"args", ChunkRange::kPer1024},    {"import_log", ChunkRange::kPer4096},
    {"export", ChunkRange::kNone},
};

std::vector<ViewerTable> ParseTables(std::string_view script) {
  constexpr std::string_view kHead = "-- table: ";
  std::vector<ViewerTable> tables;
  for (std::size_t at = script.find(kHead); at != std::string_view::npos;) {
    const std::size_t next = script.find(kHead, at + kHead.size());
    const std::string_view section = script.substr(at + kHead.size(), next - at - kHead.size());
    const std::size_t line_end = section.find('\n');
    tables.push_back({std::string(section.substr(0, line_end)),
                      std::string(kPreamble).append(section.substr(line_end + 1))});
    at = next;
  }
  return tables;
}

std::vector<ViewerChunkSpec> MakeSpecs() {
  std::vector<ViewerChunkSpec> specs;
  for (const auto& [name, range] : kChunks) {
    const auto scripts = ViewerScripts();
    const auto script =
        std::find_if(scripts.begin(), scripts.end(),
                     [stem = name](const ViewerScript& s) { return s.name == stem; });
    if (script != scripts.end()) specs.push_back({name, range, ParseTables(script->text)});
  }
  return specs;
}

}  // namespace

std::span<const ViewerChunkSpec> ViewerChunkSpecs() {
  static const std::vector<ViewerChunkSpec> specs = MakeSpecs();
  return specs;
}

}  // namespace tlparse
