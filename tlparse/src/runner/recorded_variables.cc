#include "runner/recorded_variables.h"

#include <signal.h>

#include <algorithm>
#include <array>

namespace tlparse {

namespace {

// getCvarString and its like (TraceUtils, Utils.hpp) let the first name of a purpose win over the
// later, older ones, and warn of those: the hook of `run` removes what a version need not have.
constexpr RecordedVariable kVariables[] = {
    {RecordPurpose::kTrace, "TORCH_TRACE", "2.3", "torch/_logging/_internal.py"},
    {RecordPurpose::kBufferSize, "TORCH_FR_BUFFER_SIZE", "2.9",
     "torch/csrc/distributed/c10d/FlightRecorder.hpp"},
    {RecordPurpose::kBufferSize, "TORCH_NCCL_TRACE_BUFFER_SIZE", "2.2",
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"},
    {RecordPurpose::kDumpOnTimeout, "TORCH_FR_DUMP_ON_TIMEOUT", "2.9",
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"},
    {RecordPurpose::kDumpOnTimeout, "TORCH_NCCL_DUMP_ON_TIMEOUT", "2.2",
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"},
    {RecordPurpose::kDumpFile, "TORCH_FR_DUMP_TEMP_FILE", "2.8",
     "torch/csrc/distributed/c10d/FlightRecorderDetail.hpp"},
    {RecordPurpose::kDumpFile, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "2.2",
     "torch/csrc/distributed/c10d/FlightRecorder.cpp"},
    {RecordPurpose::kDumpPipe, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "2.2",
     "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"},
    {RecordPurpose::kPythonFaults, "PYTHONFAULTHANDLER", "3.3", "Python/initconfig.c"},
};

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::string_view ValueOf(std::string_view variable) {
  const std::size_t sign = variable.find('=');
  return sign == std::string_view::npos ? std::string_view() : variable.substr(sign + 1);
}

// Empty: nothing is to be set.
std::string ValueFor(RecordPurpose purpose, const RecordPlaces& places) {
  switch (purpose) {
    case RecordPurpose::kTrace:
      return places.recorded;
    case RecordPurpose::kBufferSize:
      return "2000";
    case RecordPurpose::kDumpFile:
      return places.recorded + "/comm_lib_trace_rank_";
    case RecordPurpose::kDumpPipe:
      return places.pipes.empty() ? "" : places.pipes + "/rank_";
    case RecordPurpose::kDumpOnTimeout:
    case RecordPurpose::kPythonFaults:
      return "1";
  }
  return {};
}

}  // namespace

std::span<const RecordedVariable> RecordedVariables() { return kVariables; }

// Far from those that programs use.
int StackSignal() { return SIGRTMAX - 5; }
int ProfileSignal() { return SIGRTMAX - 6; }

JobEnvironment MakeJobEnvironment(std::span<const char* const> variables,
                                  const RecordPlaces& places, const HookRequests& requests) {
  JobEnvironment made;
  std::string python_path;
  bool has_own_faults = false;
  for (const char* const variable : variables) {
    if (NameOf(variable) == "PYTHONPATH" && !places.hook_folder.empty()) {
      python_path = ValueOf(variable);
    } else {
      made.variables.emplace_back(variable);
    }
  }
  const auto find = [&](std::string_view name) {
    return std::find_if(variables.begin(), variables.end(),
                        [&](const char* variable) { return NameOf(variable) == name; });
  };
  for (const RecordedVariable& row : kVariables) {
    const bool is_taken = std::any_of(
        std::begin(kVariables), std::end(kVariables), [&](const RecordedVariable& other) {
          return other.purpose == row.purpose && find(other.name) != variables.end();
        });
    std::string value = ValueFor(row.purpose, places);
    if (const auto own = find(row.name); own != variables.end()) {
      value = ValueOf(*own);
    } else if (is_taken || value.empty()) {
      continue;
    } else {
      made.variables.push_back(std::string(row.name) + "=" + value);
    }
    if (row.purpose == RecordPurpose::kTrace) {
      made.trace = value;
      made.has_own_trace = is_taken;
    }
    if (row.purpose == RecordPurpose::kPythonFaults) has_own_faults = is_taken;
    made.settings.push_back({std::string(row.name), value, is_taken});
  }
  for (const Change& change : requests.changes) {
    const bool is_set = change.kind == ChangeKind::kVariable;
    if (!is_set && change.kind != ChangeKind::kNoVariable) continue;
    std::erase_if(made.variables,
                  [&](const std::string& variable) { return NameOf(variable) == change.name; });
    if (is_set) made.variables.push_back(change.name + "=" + change.value);
  }
  if (!places.hook_folder.empty()) {
    made.variables.push_back("PYTHONPATH=" + places.hook_folder +
                             (python_path.empty() ? "" : ":" + python_path));
    made.variables.push_back("TLPARSE_RUN_STACKS=" + places.stacks);
    made.variables.push_back("TLPARSE_RUN_RECORDED=" + places.recorded);
    made.variables.push_back("TLPARSE_RUN_PIPES=" + places.pipes);
    made.variables.push_back("TLPARSE_RUN_PROCESSES=" + places.processes);
    made.variables.push_back("TLPARSE_RUN_ENDS=" + places.ends);
    made.variables.push_back(std::string("TLPARSE_RUN_FAULTS=") + (has_own_faults ? "" : "1"));
    made.variables.push_back("TLPARSE_RUN_PROFILE=" + requests.profile);
    made.variables.push_back(std::string("TLPARSE_RUN_MEMORY=") + (requests.memory ? "1" : ""));
    made.variables.push_back("TLPARSE_RUN_NUMBERS=" + requests.numbers);
    made.variables.push_back("TLPARSE_RUN_SIGNAL=" + std::to_string(StackSignal()));
    made.variables.push_back("TLPARSE_RUN_PROFILE_SIGNAL=" + std::to_string(ProfileSignal()));
    if (!requests.changes.empty()) {
      JsonWriter json;
      WriteChanges(json, requests.changes);
      made.variables.push_back("TLPARSE_RUN_CHANGES=" + json.Take());
      made.variables.push_back("TLPARSE_RUN_CHANGED=" + places.changed);
    }
  }
  return made;
}

std::vector<JobEnvironment::Setting> TellingVariables(const std::vector<std::string>& variables) {
  constexpr std::array kPrefixes = {"TORCH",        "PYTORCH_",     "NCCL_",
                                    "GLOO_",        "INDUCTOR",     "TRITON",
                                    "CUDA_",        "HIP_",         "ROCR_",
                                    "OMP_",         "MKL_",         "SLURM_JOB_ID",
                                    "SLURM_PROCID", "SLURM_NNODES", "VLLM_",
                                    "AOT_",         "MASTER_",      "PYTHONFAULTHANDLER",
                                    "PYTHONPATH",   "LOCAL_RANK",   "LOCAL_WORLD_SIZE",
                                    "GROUP_RANK"};
  constexpr std::array kNames = {"RANK", "WORLD_SIZE", "VIRTUAL_ENV", "CONDA_PREFIX"};
  constexpr std::array kSecret = {"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"};
  std::vector<JobEnvironment::Setting> telling;
  for (const std::string& variable : variables) {
    const std::string_view name = NameOf(variable);
    const bool is_secret = std::any_of(kSecret.begin(), kSecret.end(), [&](const char* part) {
      return name.find(part) != std::string_view::npos;
    });
    const bool is_telling =
        std::any_of(kPrefixes.begin(), kPrefixes.end(),
                    [&](const char* prefix) { return name.starts_with(prefix); }) ||
        std::find(kNames.begin(), kNames.end(), name) != kNames.end();
    if (is_telling && !is_secret)
      telling.push_back({std::string(name), std::string(ValueOf(variable))});
  }
  std::sort(telling.begin(), telling.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return telling;
}

}  // namespace tlparse
