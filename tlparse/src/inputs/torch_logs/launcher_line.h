// What launchers log when a process has failed: torchrun (torch/distributed/elastic/multiprocessing/api.py), DeepSpeed
// (deepspeed/launcher/launch.py), Slurm (srun and slurmstepd).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

// A failure that a launcher saw: what a report of torchrun calls the root cause, or a line of a text without that report.
struct LauncherFailure {
  std::int64_t line = 0;
  std::string launcher = {};  // "torchrun", "DeepSpeed", "srun", "slurmstepd"
  std::string process = {};   // "Task 3 of srun"; empty: by its rank, or not said
  std::optional<std::int64_t> rank = {}, local_rank = {}, pid = {};
  std::optional<std::int64_t> exit_code = {};  // -9: SIGKILL ended the process
  bool is_out_of_memory = false;               // its limit of memory ended it
  std::optional<std::int64_t> local_rank_of_report = {};
};

// "failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: …"; "[…:sigkill_handler] [command…] exits with return code = -9";
// "srun: error: n1: task 3: Exited with exit code 1"; "slurmstepd: error: Detected 1 oom_kill event in StepId=…".
// Nothing: another line, or the end of one that was asked to end.
std::optional<LauncherFailure> ParseLauncherLine(std::string_view line, std::int64_t number);

// Whether a launcher wrote the line because a process had ended.
bool IsOfLauncher(std::string_view line);

}  // namespace tlparse
