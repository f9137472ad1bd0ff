#include "answers/experiment/option_difference.h"

#include <map>
#include <optional>
#include <utility>

#include "answers/experiment/outcome.h"
#include "facts/ranks/compile_options.h"
#include "queries/answers/experiment/option_difference.h"

namespace tlparse {
namespace {

using Values = std::map<std::string, std::string>;

Result<Values> OptionsOfRun(Database& database, std::int64_t run_id,
                            const std::optional<std::int64_t>& rank = {}) {
  std::vector<std::int64_t> compiles;
  FOR_EACH_ROW(const CompileWithMetrics& row,
               Query<CompileWithMetrics>(database, {.run_id = run_id, .rank = rank})) {
    compiles.push_back(row.compile_id);
  }
  for (const std::int64_t compile : compiles) {
    ASSIGN_OR_RETURN(Values options, OptionsOfCompile(database, compile));
    if (!options.empty()) return options;
  }
  return Values();
}

Result<Values> VariablesOfRun(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const std::optional<RecordedCommand> command, LoadCommand(database, run_id));
  Values values;
  if (!command) return values;
  for (const std::string& variable : command->variables) {
    const std::size_t sign = variable.find('=');
    values[variable.substr(0, sign)] = variable.substr(sign + 1);
  }
  return values;
}

// What is of the place and time of a run, not of its options.
bool IsOfThePlace(const std::string& variable) {
  for (const std::string_view name :
       {"MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "GROUP_RANK", "SLURM_JOB_ID",
        "SLURM_PROCID", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (variable == name) return true;
  }
  return variable.starts_with("TORCHELASTIC_") || variable.starts_with("TLPARSE_");
}

Change VariableChange(const std::string& name, const Values& values) {
  const auto found = values.find(name);
  if (found == values.end()) return {ChangeKind::kNoVariable, name, {}, {}, {}};
  return {ChangeKind::kVariable, name, found->second, {}, {}};
}

bool CanBeSet(const std::string& value) {
  return !value.empty() && !value.starts_with('[') && !value.starts_with('{') &&
         !value.starts_with('<') && value.find("…") == std::string::npos &&
         value.find("not JSON serializable") == std::string::npos;
}

void AddOptions(const Values& good, const Values& bad, OptionDifferences& result) {
  for (const auto& [name, value] : bad) {
    const auto other = good.find(name);
    if (other != good.end() && other->second == value) continue;
    const std::string option = OptionOfConfig(name);
    if (other == good.end() || option.empty() || !CanBeSet(value) || !CanBeSet(other->second)) {
      result.left_out.push_back(name);
      continue;
    }
    result.differences.push_back({{ChangeKind::kOption, option, other->second, {}, {}},
                                  {ChangeKind::kOption, option, value, {}, {}}});
  }
  for (const auto& [name, value] : good) {
    if (!bad.contains(name)) result.left_out.push_back(name);
  }
}

}  // namespace

Result<OptionDifferences> CompareOptions(Database& good, std::int64_t good_run_id, Database& bad,
                                         std::int64_t bad_run_id) {
  ASSIGN_OR_RETURN(const Values good_variables, VariablesOfRun(good, good_run_id));
  ASSIGN_OR_RETURN(const Values bad_variables, VariablesOfRun(bad, bad_run_id));
  Values names = good_variables;
  names.insert(bad_variables.begin(), bad_variables.end());
  OptionDifferences result;
  for (const auto& [name, value] : names) {
    OptionDifference difference = {VariableChange(name, good_variables),
                                   VariableChange(name, bad_variables)};
    if (IsOfThePlace(name) || difference.good == difference.bad) continue;
    result.differences.push_back(std::move(difference));
  }
  ASSIGN_OR_RETURN(const Values good_options, OptionsOfRun(good, good_run_id));
  ASSIGN_OR_RETURN(const Values bad_options, OptionsOfRun(bad, bad_run_id));
  if (!good_options.empty() && !bad_options.empty()) AddOptions(good_options, bad_options, result);
  return result;
}

Result<OptionDifferences> CompareOptionsOfRanks(Database& database, std::int64_t run_id,
                                                std::int64_t good_rank, std::int64_t bad_rank) {
  OptionDifferences result;
  ASSIGN_OR_RETURN(const Values good, OptionsOfRun(database, run_id, good_rank));
  ASSIGN_OR_RETURN(const Values bad, OptionsOfRun(database, run_id, bad_rank));
  for (const auto& [rank, values] : {std::pair(good_rank, &good), std::pair(bad_rank, &bad)}) {
    if (values->empty())
      return Fail(ErrorCode::kNotFound,
                  "no compile of rank " + std::to_string(rank) + " names its options in the logs");
  }
  AddOptions(good, bad, result);
  return result;
}

}  // namespace tlparse
