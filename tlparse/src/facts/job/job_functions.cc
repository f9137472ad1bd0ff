// Which functions a job's compiles are of: by name, file and line.
#include <algorithm>

#include "facts/job/job.h"

namespace tlparse {
namespace {

std::string_view LastOfPath(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string JobSlot::Title() const {
  return label.empty() ? function : function.empty() ? label : label + ' ' + function;
}

JobSlot Job::SlotOf(std::int32_t slot, const std::vector<RankIndex>& who) const {
  JobSlot result;
  std::vector<std::int32_t> functions;
  const JobCompile* first = nullptr;
  for (const RankIndex one : who) {
    const std::int32_t index = CompileOf(one, slot);
    if (index < 0) continue;
    const JobCompile& own = compiles_[static_cast<std::size_t>(index)];
    if (own.function_id >= 0 &&
        std::find(functions.begin(), functions.end(), own.function_id) == functions.end()) {
      result.function += (functions.empty() ? "" : " or ") + string(own.function_id);
      functions.push_back(own.function_id);
    }
    if (first == nullptr) {
      first = &own;
      result.label = string(own.label_id);
      result.file = own.file_id < 0 ? std::string() : string(own.file_id);
      result.line = own.line;
      continue;
    }
    if (own.label_id != first->label_id) result.label.clear();
    if (own.file_id != first->file_id) result.file.clear();
    if (own.line != first->line) result.line = 0;
  }
  if (first == nullptr) return slots_[static_cast<std::size_t>(slot)];
  if (result.label.empty() && result.function.empty()) result.label = "a compile";
  return result;
}

bool Job::HasCompiledBoth(const JobCompile& a, const JobCompile& b) const {
  const bool is_of_place = a.function_id == b.function_id;
  const auto has = [&](const std::vector<std::int32_t>& own, const JobCompile& one) {
    return std::any_of(own.begin(), own.end(), [&](std::int32_t index) {
      const JobCompile& other = compiles_[static_cast<std::size_t>(index)];
      return other.function_id == one.function_id &&
             (!is_of_place || (other.file_id == one.file_id && other.line == one.line));
    });
  };
  return std::any_of(sequence_classes_.begin(), sequence_classes_.end(), [&](const auto& members) {
    const std::vector<std::int32_t>& own =
        compiles_of_participant_[static_cast<std::size_t>(members.front())];
    return has(own, a) && has(own, b);
  });
}

// Whether they are no two versions of one function: a rank compiled both. Lambdas of two files have
// nothing in common but a graph.
bool Job::AreTwoFunctions(const JobCompile& a, const JobCompile& b) const {
  if (a.function_id < 0 || b.function_id < 0) return false;
  if (a.function_id == b.function_id) {
    if (a.file_id < 0 || b.file_id < 0 || (a.file_id == b.file_id && a.line == b.line))
      return false;
    if (string(a.function_id).starts_with('<') &&
        LastOfPath(string(a.file_id)) != LastOfPath(string(b.file_id)) &&
        (a.graph_content == 0 || a.graph_content != b.graph_content))
      return true;
  }
  return HasCompiledBoth(a, b);
}

bool Job::AreApart(const JobCompile& a, const JobCompile& b, bool is_of_any_value) const {
  const bool are_variants = a.variant_id >= 0 && b.variant_id >= 0 && a.variant_id != b.variant_id;
  return AreTwoFunctions(a, b) || (are_variants && !is_of_any_value);
}

bool Job::IsOfFunction(const JobCompile& compile, const JobSlot& slot) const {
  return compile.function_id >= 0 && string(compile.function_id) == slot.function &&
         compile.line == slot.line &&
         (compile.file_id < 0 ? slot.file.empty() : string(compile.file_id) == slot.file);
}

bool Job::HaveOtherPlaces(const JobCompile& a, const JobCompile& b) const {
  if (a.file_id < 0 || b.file_id < 0) return false;
  return (a.line > 0 && b.line > 0 && a.line != b.line) ||
         LastOfPath(string(a.file_id)) != LastOfPath(string(b.file_id));
}

}  // namespace tlparse
