#include <fmt/format.h>

#include <algorithm>

#include "inputs/common/generated_code.h"
#include "inputs/join/join_profile.h"

namespace tlparse {

Result<CompiledCode> CompiledCode::Load(Database& database, std::int64_t run_id) {
  CompiledCode code;
  ASSIGN_OR_RETURN(
      Statement graphs,
      database.Prepare(
          "SELECT g.id, g.compile_id, c.process_id, g.direction, g.provenance_content_id, "
          "c.start_time_us, g.cache_key FROM graph g JOIN compile c ON c.id = g.compile_id "
          "JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id "
          "WHERE f.run_id = ? ORDER BY c.start_time_us, g.compile_id, g.ordinal"));
  graphs.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, graphs.Step());
    if (!has_row) break;
    code.graphs_.push_back(
        std::make_unique<Graph>(Graph{graphs.Int(0), graphs.Int(1), graphs.Int(2),
                                      std::string(graphs.Text(3)), graphs.Int(4), graphs.Int(5)}));
    const Graph* const graph = code.graphs_.back().get();
    OfDirection& of_direction =
        code.by_compile_[graph->compile_id][graph->direction == "backward" ? 1 : 0];
    of_direction.has_several |= of_direction.first != nullptr;
    if (of_direction.first == nullptr) of_direction.first = graph;
    if (!graphs.IsNull(6)) code.by_key_[std::string(graphs.Text(6))].push_back(graph);
  }
  ASSIGN_OR_RETURN(Statement compiles,
                   database.Prepare("SELECT c.id, c.process_id, c.label, c.start_time_us "
                                    "FROM compile c JOIN process p ON p.id = c.process_id "
                                    "JOIN log_file f ON f.id = p.log_file_id "
                                    "WHERE f.run_id = ? ORDER BY c.start_time_us, c.id"));
  compiles.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, compiles.Step());
    if (!has_row) return code;
    code.by_label_[fmt::format("{}/{}", compiles.Int(1), compiles.Text(2))].push_back(
        {compiles.Int(0), compiles.Int(3)});
  }
}

const std::vector<const CompiledCode::Graph*>* CompiledCode::WithKey(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second;
}

const std::vector<CompiledCode::Compile>* CompiledCode::WithLabel(std::int64_t process_id,
                                                                  const std::string& label) const {
  const auto found = by_label_.find(fmt::format("{}/{}", process_id, label));
  return found == by_label_.end() ? nullptr : &found->second;
}

CompiledCode::OfDirection CompiledCode::GraphOf(std::int64_t compile_id, bool is_backward) const {
  const auto found = by_compile_.find(compile_id);
  return found == by_compile_.end() ? OfDirection() : found->second[is_backward ? 1 : 0];
}

Result<const std::vector<CompiledCode::Kernel>*> CompiledCode::KernelsOf(Database& database,
                                                                         const Graph& graph) {
  const auto [entry, is_new] = kernels_.try_emplace(graph.content_id);
  if (!is_new) return &entry->second;
  ASSIGN_OR_RETURN(
      Statement* const kernels,
      database.PrepareKept(
          "SELECT id, name FROM kernel_row WHERE content_id = ?1 AND code_line IS NOT NULL "
          "AND (debug_handle IS NOT NULL OR NOT EXISTS (SELECT 1 FROM kernel_row k "
          "WHERE k.content_id = ?1 AND k.debug_handle IS NOT NULL AND k.code_line IS NOT NULL)) "
          "ORDER BY code_line, ordinal"));
  kernels->Bind(1, graph.content_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, kernels->Step());
    if (!has_row) return &entry->second;
    entry->second.push_back({kernels->Int(0), std::string(kernels->Text(1))});
  }
}

Result<const CompiledCode::KernelFiles*> CompiledCode::KernelFilesOf(Database& database,
                                                                     const Graph& graph) {
  const auto [entry, is_new] = kernel_files_.try_emplace(graph.id);
  if (!is_new) return &entry->second;
  ASSIGN_OR_RETURN(Statement* const code,
                   database.PrepareKept("SELECT p.content "
                                        "FROM graph g JOIN record_row r ON r.id = g.code_record_id "
                                        "JOIN payload_row p ON p.id = r.payload_id "
                                        "WHERE g.id = ?"));
  code->Bind(1, graph.id);
  ASSIGN_OR_RETURN(const bool has_row, code->Step());
  if (has_row) {
    for (const auto& [path, name] : KernelPaths(code->Text(0)))
      entry->second.emplace(BaseName(path), name);
  }
  code->Reset();
  return &entry->second;
}

Result<std::int64_t> NoteId(Database& database, std::string_view text) {
  ASSIGN_OR_RETURN(Statement* const find,
                   database.PrepareKept("SELECT id FROM text_row WHERE text = ? LIMIT 1"));
  find->Bind(1, text);
  ASSIGN_OR_RETURN(const bool has_row, find->Step());
  const std::int64_t id = has_row ? find->Int(0) : 0;
  find->Reset();
  if (id != 0) return id;
  ASSIGN_OR_RETURN(Statement* const add,
                   database.PrepareKept("INSERT INTO text_row (text) VALUES (?)"));
  add->Bind(1, text);
  RETURN_IF_ERROR(add->Run());
  return sqlite3_last_insert_rowid(database.handle());
}

}  // namespace tlparse
