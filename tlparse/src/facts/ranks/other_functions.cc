#include "facts/ranks/other_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "facts/contents/graph_difference.h"

namespace tlparse {

std::optional<MovedFunction> FindMoved(Database& database, const Job& job, RankIndex old_rank,
                                       RankIndex new_rank, const std::string& file) {
  if (file.empty()) return std::nullopt;
  for (const std::int32_t slot : job.slot_order()) {
    const std::int32_t a = job.CompileOf(old_rank, slot), b = job.CompileOf(new_rank, slot);
    if (a < 0 || b < 0) continue;
    const JobCompile& old_one = job.compiles()[static_cast<std::size_t>(a)];
    const JobCompile& new_one = job.compiles()[static_cast<std::size_t>(b)];
    if (old_one.line == new_one.line || old_one.line <= 0 || new_one.line <= 0 ||
        old_one.function_id != new_one.function_id || new_one.function_id < 0 ||
        old_one.file_id != new_one.file_id || new_one.file_id < 0 ||
        job.string(new_one.file_id) != file || old_one.graph_content == 0 ||
        new_one.graph_content == 0)
      continue;
    const std::string& name = job.string(new_one.function_id);
    if (name.empty() || name == "forward" || name == "__call__" || name == "<lambda>") continue;
    // Where the graphs cannot be compared nothing is claimed.
    const Result<GraphDifference> graphs =
        CompareGraphs(database, old_one.graph_content, database, new_one.graph_content);
    if (graphs && !graphs->differs) return MovedFunction{name, old_one.line, new_one.line};
  }
  return std::nullopt;
}

bool AreOfOtherFunctions(Database& database, const Job& job, const JobCompile& a,
                         const JobCompile& b) {
  if (a.function_id < 0 || b.function_id < 0) return false;
  if (a.function_id != b.function_id) return true;
  return a.graph_content != 0 && b.graph_content != 0 && a.graph_content != b.graph_content &&
         job.HaveOtherPlaces(a, b) &&
         !FindMoved(database, job, a.participant, b.participant, job.string(a.file_id));
}

std::string NameBeside(const Job& job, const JobCompile& compile, const JobCompile& other) {
  const std::string& name = job.string(compile.function_id);
  if (compile.function_id != other.function_id || compile.file_id < 0) return name;
  const std::string& file = job.string(compile.file_id);
  return fmt::format("{} ({}:{})", name, file.substr(file.rfind('/') + 1), compile.line);
}

std::vector<std::int32_t> OfOneFunction(Database& database, const Job& job, RankIndex a,
                                        RankIndex b, std::vector<std::int32_t> slots) {
  std::erase_if(slots, [&](std::int32_t slot) {
    const std::int32_t at_a = job.CompileOf(a, slot), at_b = job.CompileOf(b, slot);
    return at_a >= 0 && at_b >= 0 &&
           AreOfOtherFunctions(database, job, job.compiles()[static_cast<std::size_t>(at_a)],
                               job.compiles()[static_cast<std::size_t>(at_b)]);
  });
  return slots;
}

}  // namespace tlparse
