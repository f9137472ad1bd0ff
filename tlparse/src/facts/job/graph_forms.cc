#include "facts/job/graph_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/ascii.h"
#include "queries/facts/job/graph_forms.h"

namespace tlparse {

Result<const GraphForms*> GraphForms::Load(Database& database, const Job& job) {
  return job.FoundOnce<GraphForms>([&]() -> Result<GraphForms> {
    std::map<std::int32_t, std::set<std::int64_t>> graphs_of;  // by slot
    for (const JobCompile& compile : job.compiles()) {
      if (compile.slot >= 0 && compile.graph_content != 0)
        graphs_of[compile.slot].insert(compile.graph_content);
    }
    GraphForms forms;
    ASSIGN_OR_RETURN(auto operations, PreparedQuery<OperationOfGraph>::Make(database));
    std::map<std::string, std::int64_t> first_of;
    for (const auto& [slot, graphs] : graphs_of) {
      if (graphs.size() < 2) continue;
      for (const std::int64_t graph : graphs) {
        const auto [found, is_new] = forms.form_of_.try_emplace(graph, graph);
        if (!is_new) continue;
        std::string text;
        FOR_EACH_ROW(const OperationOfGraph& row, operations.Run({.content_id = graph})) {
          std::string operation(row.operation);
          std::erase_if(operation, IsDigit);
          text += fmt::format("{} = {}\n", row.name, operation);
        }
        if (!text.empty())
          found->second = first_of.try_emplace(std::move(text), graph).first->second;
      }
    }
    return forms;
  });
}

}  // namespace tlparse
