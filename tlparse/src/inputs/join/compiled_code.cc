#include "queries/inputs/join/compiled_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "inputs/common/generated_code.h"
#include "inputs/join/join_profile.h"

namespace tlparse {

Result<CompiledCode> CompiledCode::Load(Database& database, std::int64_t run_id) {
  CompiledCode code;
  FOR_EACH_ROW(const CompiledGraph& row, Query<CompiledGraph>(database, {.run_id = run_id})) {
    code.graphs_.push_back(std::make_unique<Graph>(
        Graph{row.id, row.compile_id, row.process_id, std::string(row.direction),
              row.provenance_content_id, row.start_time_us}));
    const Graph* const graph = code.graphs_.back().get();
    OfDirection& of_direction =
        code.by_compile_[graph->compile_id][graph->direction == "backward" ? 1 : 0];
    of_direction.has_several |= of_direction.first != nullptr;
    if (of_direction.first == nullptr) of_direction.first = graph;
    if (row.cache_key) code.by_key_[std::string(*row.cache_key)].push_back(graph);
  }
  FOR_EACH_ROW(const LabelledCompile& row, Query<LabelledCompile>(database, {.run_id = run_id})) {
    code.by_label_[fmt::format("{}/{}", row.process_id, row.label)].push_back(
        {row.id, row.start_time_us});
  }
  return code;
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
  FOR_EACH_ROW(const KernelOfContent& row,
               KeptQuery<KernelOfContent>(database, {.content_id = graph.content_id})) {
    entry->second.push_back({row.id, std::string(row.name)});
  }
  return &entry->second;
}

Result<const CompiledCode::KernelFiles*> CompiledCode::KernelFilesOf(Database& database,
                                                                     const Graph& graph) {
  const auto [entry, is_new] = kernel_files_.try_emplace(graph.id);
  if (!is_new) return &entry->second;
  ASSIGN_OR_RETURN(const FirstRow<CodeTextOfGraph> code,
                   First(KeptQuery<CodeTextOfGraph>(database, {.graph_id = graph.id})));
  if (code) {
    for (const auto& [path, name] : KernelPaths(code->content))
      entry->second.emplace(BaseName(path), name);
  }
  return &entry->second;
}

Result<std::int64_t> NoteId(Database& database, std::string_view text) {
  ASSIGN_OR_RETURN(const FirstRow<IdOfText> known,
                   First(KeptQuery<IdOfText>(database, {.text = text})));
  const std::int64_t id = known ? known->id : 0;
  if (id != 0) return id;
  ASSIGN_OR_RETURN(Statement* const add,
                   database.PrepareKept("INSERT INTO text_row (text) VALUES (?)"));
  add->Bind(1, text);
  RETURN_IF_ERROR(add->Run());
  return sqlite3_last_insert_rowid(database.handle());
}

}  // namespace tlparse
