#include "report/viewer/tables.h"

#include <algorithm>
#include <utility>

namespace tlparse {
namespace {

// In the order in which the page's data is written: what takes long first.
constexpr std::pair<std::string_view, ChunkRange> kChunks[] = {
    {"index", ChunkRange::kNone},        {"compiles", ChunkRange::kNone},
    {"problems", ChunkRange::kNone},     {"graphs", ChunkRange::kNone},
    {"kernels", ChunkRange::kNone},      {"compile", ChunkRange::kCompiles},
    {"process", ChunkRange::kProcess},   {"guards", ChunkRange::kItem},
    {"provenance", ChunkRange::kItem},   {"cache", ChunkRange::kNone},
    {"sets", ChunkRange::kNone},         {"components", ChunkRange::kPer4096},
    {"schedules", ChunkRange::kNone},    {"events", ChunkRange::kProcess},
    {"args", ChunkRange::kPer1024},      {"import_log", ChunkRange::kPer4096},
    {"export", ChunkRange::kNone},       {"source", ChunkRange::kNone},
    {"tuning", ChunkRange::kNone},       {"trend", ChunkRange::kNone},
    {"torch_log", ChunkRange::kPer4096},
};

std::string_view Script(std::string_view name) {
  const auto scripts = ViewerScripts();
  const auto script = std::find_if(scripts.begin(), scripts.end(),
                                   [name](const ViewerScript& s) { return s.name == name; });
  return script == scripts.end() ? std::string_view() : script->text;
}

struct Section {
  std::string_view name, text;
};

// Those below lines "-- table: <name>", or another mark.
std::vector<Section> SectionsOf(std::string_view script, std::string_view mark) {
  std::vector<Section> sections;
  for (std::size_t at = script.find(mark); at != std::string_view::npos;) {
    const std::size_t next = script.find(mark, at + mark.size());
    const std::string_view section = script.substr(at + mark.size(), next - at - mark.size());
    const std::size_t line_end = section.find('\n');
    sections.push_back({section.substr(0, line_end), section.substr(line_end + 1)});
    at = next;
  }
  return sections;
}

// The query with the parts that it names. SQLite parses what is not needed as well.
std::string WithParts(std::string_view query, const std::vector<Section>& parts) {
  std::vector<std::string_view> used = {query};  // from the last
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const bool is_named = std::any_of(used.begin(), used.end(), [&](std::string_view text) {
      return text.find(part->name) != std::string_view::npos;
    });
    if (is_named) used.push_back(part->text);
  }
  std::string text;
  for (auto one = used.rbegin(); one + 1 != used.rend(); ++one) {
    text += text.empty() ? "WITH " : ", ";
    text += *one;
  }
  return text += query;
}

std::vector<ViewerTable> ParseTables(std::string_view script) {
  const std::vector<Section> parts = SectionsOf(Script("common"), "-- part: ");
  std::vector<ViewerTable> tables;
  for (const auto& [name, query] : SectionsOf(script, "-- table: ")) {
    const bool is_query = query.find("SELECT") != std::string_view::npos;
    tables.push_back({std::string(name), is_query ? WithParts(query, parts) : std::string()});
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
