// Variants of functions: what is compiled again where an argument has another value, or for evaluation.
#include "queries/facts/job/job_variants.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "facts/job/job.h"

namespace tlparse {
namespace {

using Checks = std::map<std::string, std::string>;  // by argument: "L['kind'] == 'image'"

constexpr std::string_view kWithoutGradients = "inference\n";

// Whether a source is an argument itself, and nothing that is reached from one.
bool IsArgument(std::string_view source) {
  return source.starts_with("L['") && source.find("']") == source.size() - 2;
}

// The arguments whose values differ between compiles of one rank.
std::set<std::string> Varying(const std::vector<const Checks*>& of_rank) {
  std::set<std::string> varying;
  std::map<std::string, const std::string*> first;
  for (const Checks* const checks : of_rank) {
    for (const auto& [argument, check] : *checks) {
      const auto [found, is_new] = first.try_emplace(argument, &check);
      if (!is_new && *found->second != check) varying.insert(argument);
    }
  }
  return varying;
}

using ChecksOfCompile = std::unordered_map<std::int32_t, const Checks*>;
using GradientsOfCompiles = std::unordered_map<std::int32_t, bool>;  // whether they are needed

// Of the compiles of a function: by what each differs from others of its rank.
std::map<std::int32_t, std::string> FindVariants(const std::vector<std::int32_t>& of_function,
                                                 const std::vector<JobCompile>& compiles,
                                                 const ChecksOfCompile& checks,
                                                 const GradientsOfCompiles& gradients) {
  std::set<std::string> varying;
  std::map<RankIndex, std::vector<const Checks*>> by_rank;
  std::map<RankIndex, std::set<bool>> modes;
  for (const std::int32_t index : of_function) {
    const RankIndex rank = compiles[static_cast<std::size_t>(index)].participant;
    if (const auto found = gradients.find(index); found != gradients.end())
      modes[rank].insert(found->second);
    if (const auto found = checks.find(index); found != checks.end())
      by_rank[rank].push_back(found->second);
  }
  for (const auto& [rank, of_rank] : by_rank) varying.merge(Varying(of_rank));
  const bool has_modes = std::any_of(modes.begin(), modes.end(),
                                     [](const auto& one) { return one.second.size() > 1; });
  std::map<std::int32_t, std::string> variants;
  for (const std::int32_t index : of_function) {
    std::string variant;
    if (const auto mode = gradients.find(index); has_modes && mode != gradients.end())
      variant = mode->second ? "gradients\n" : kWithoutGradients;
    if (const auto found = checks.find(index); found != checks.end()) {
      for (const auto& [argument, check] : *found->second) {
        if (varying.contains(argument)) variant += check + '\n';
      }
    }
    if (!variant.empty()) variants.emplace(index, std::move(variant));
  }
  return variants;
}

}  // namespace

bool Job::IsWithoutGradients(const JobCompile& compile) const {
  return compile.variant_id >= 0 && string(compile.variant_id).starts_with(kWithoutGradients);
}

Result<void> Job::LoadVariants(Database& database) {
  using Function = std::tuple<std::int32_t, std::int32_t, std::int64_t>;
  std::map<Function, std::vector<std::int32_t>> functions;  // compiles, by participant
  std::set<Function> repeated;
  for (const std::vector<std::int32_t>& own : compiles_of_participant_) {
    for (const std::int32_t index : own) {
      const JobCompile& compile = compiles_[static_cast<std::size_t>(index)];
      if (compile.function_id < 0 || compile.graph_content == 0) continue;
      const Function function{compile.function_id, compile.file_id, compile.line};
      std::vector<std::int32_t>& all = functions[function];
      if (!all.empty() &&
          compiles_[static_cast<std::size_t>(all.back())].participant == compile.participant)
        repeated.insert(function);
      all.push_back(index);
    }
  }
  if (repeated.empty() || !HasSeveral()) return {};
  std::unordered_map<std::int64_t, Checks> checks_of_content;
  FOR_EACH_ROW(const ArgumentCheck& row, Query<ArgumentCheck>(database)) {
    if (IsArgument(row.source))
      checks_of_content[row.content_id].try_emplace(std::string(row.source), row.expression);
  }
  GradientsOfCompiles gradients;
  FOR_EACH_ROW(const GradientsOfCompile& row,
               Query<GradientsOfCompile>(database, {.in_logs = InLogs("t.record_id")})) {
    const std::int32_t compile = IndexOfCompile(row.compile_id);
    if (compile >= 0) gradients[compile] = row.are_needed;
  }
  ChecksOfCompile checks_of_compile;
  FOR_EACH_ROW(const GuardsOfCompile& row,
               Query<GuardsOfCompile>(database, {.in_logs = InLogs("record_id")})) {
    const std::int32_t compile = IndexOfCompile(row.compile_id);
    const auto checks = checks_of_content.find(row.content_id);
    if (compile >= 0 && checks != checks_of_content.end())
      checks_of_compile[compile] = &checks->second;
  }
  for (const Function& function : repeated) {
    for (const auto& [index, variant] :
         FindVariants(functions[function], compiles_, checks_of_compile, gradients))
      compiles_[static_cast<std::size_t>(index)].variant_id = Intern(variant);
  }
  return {};
}

}  // namespace tlparse
