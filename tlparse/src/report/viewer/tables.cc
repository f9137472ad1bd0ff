#include "report/viewer/tables.h"

#include <algorithm>
#include <utility>

namespace tlparse {
namespace {

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
    {"export", ChunkRange::kNone},     {"source", ChunkRange::kNone},
    {"tuning", ChunkRange::kNone},     {"trend", ChunkRange::kNone},
};

std::string_view Script(std::string_view name) {
  const auto scripts = ViewerScripts();
  const auto script = std::find_if(scripts.begin(), scripts.end(),
                                   [name](const ViewerScript& s) { return s.name == name; });
  return script == scripts.end() ? std::string_view() : script->text;
}

std::vector<ViewerTable> ParseTables(std::string_view script) {
  const std::string common(Script("common"));
  constexpr std::string_view kTableMark = "-- table: ";
  std::vector<ViewerTable> tables;
  for (std::size_t at = script.find(kTableMark); at != std::string_view::npos;) {
    const std::size_t next = script.find(kTableMark, at + kTableMark.size());
    const std::string_view section =
        script.substr(at + kTableMark.size(), next - at - kTableMark.size());
    const std::size_t line_end = section.find('\n');
    const std::string_view query = section.substr(line_end + 1);
    const bool is_query = query.find("SELECT") != std::string_view::npos;
    tables.push_back({std::string(section.substr(0, line_end)),
                      is_query ? common + std::string(query) : std::string()});
    at = next;
  }
  return tables;
}

std::vector<ViewerChunkSpec> MakeSpecs() {
  std::vector<ViewerChunkSpec> specs;
  for (const auto& [name, range] : kChunks) {
    specs.push_back({name, range, ParseTables(Script(name))});
  }
  return specs;
}

}  // namespace

std::span<const ViewerChunkSpec> ViewerChunkSpecs() {
  static const std::vector<ViewerChunkSpec> specs = MakeSpecs();
  return specs;
}

}  // namespace tlparse
