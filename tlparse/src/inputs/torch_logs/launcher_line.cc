#include "inputs/torch_logs/launcher_line.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <signal.h>

#include <utility>

#include "inputs/torch_logs/number_after.h"

namespace tlparse {
namespace {

bool Holds(std::string_view line, std::string_view part) { return line.find(part) != line.npos; }

std::optional<LauncherFailure> OfTorchrun(std::string_view line) {
  const std::size_t at = line.find("failed (exitcode: ");
  if (at == line.npos) return std::nullopt;
  line.remove_prefix(at);
  LauncherFailure failure;
  failure.launcher = "torchrun";
  failure.exit_code = NumberAfter(line, "(exitcode: ");
  failure.local_rank = NumberAfter(line, ") local_rank: ");
  failure.pid = NumberAfter(line, "(pid: ");
  if (!failure.exit_code || !failure.local_rank || !failure.pid) return std::nullopt;
  return failure;
}

// The command in the line is that of the last process that was started, whichever failed.
std::optional<LauncherFailure> OfDeepSpeed(std::string_view line) {
  constexpr std::string_view kCode = " exits with return code = ";
  if (!Holds(line, "sigkill_handler]") || !Holds(line, kCode)) return std::nullopt;
  LauncherFailure failure;
  failure.launcher = "DeepSpeed";
  failure.process = "A process of DeepSpeed's launcher";
  failure.exit_code = NumberAfter(line.substr(line.rfind(kCode)), kCode, true);
  return failure.exit_code ? std::optional(failure) : std::nullopt;
}

std::optional<LauncherFailure> OfSlurm(std::string_view line) {
  static const re2::RE2 kTask(R"(srun: error: \S+: (tasks? [\d,-]+): (.+))"),
      kExit(R"(Exited with exit code (\d+).*)");
  if (!line.starts_with("srun: error: ") && !line.starts_with("slurmstepd: error: "))
    return std::nullopt;
  LauncherFailure failure;
  std::string task, how;
  if (line.starts_with("slurmstepd") && Holds(line, "oom_kill event")) {
    failure.launcher = "slurmstepd";
    failure.process = "A task of Slurm";
    failure.exit_code = -SIGKILL;
    failure.is_out_of_memory = true;
    return failure;
  }
  const re2::StringPiece text(line.data(), line.size());
  if (!re2::RE2::FullMatch(text, kTask, &task, &how)) return std::nullopt;
  failure.launcher = "srun";
  failure.process = fmt::format("{} of srun", task);
  failure.process[0] = 'T';
  failure.is_out_of_memory = how.starts_with("Out Of Memory");
  std::int64_t code = 0;
  if (re2::RE2::FullMatch(how, kExit, &code)) failure.exit_code = code;
  for (const auto& [word, signal] :
       {std::pair("Killed", SIGKILL), std::pair("Out Of Memory", SIGKILL),
        std::pair("Segmentation fault", SIGSEGV), std::pair("Aborted", SIGABRT),
        std::pair("Bus error", SIGBUS), std::pair("Floating point exception", SIGFPE)})
    if (how.starts_with(word)) failure.exit_code = -signal;
  return failure.exit_code ? std::optional(failure) : std::nullopt;
}

}  // namespace

std::optional<LauncherFailure> ParseLauncherLine(std::string_view line, std::int64_t number) {
  std::optional<LauncherFailure> failure = OfTorchrun(line);
  if (!failure) failure = OfDeepSpeed(line);
  if (!failure) failure = OfSlurm(line);
  if (failure) failure->line = number;
  return failure;
}

bool IsOfLauncher(std::string_view line) {
  return Holds(line, "sigkill_handler]") || Holds(line, "torch/distributed/elastic/") ||
         Holds(line, "torch.distributed.elastic.") || line.starts_with("srun: error: ") ||
         line.starts_with("slurmstepd: error: ") || line.starts_with("mpirun noticed that ") ||
         line.starts_with("Primary job  terminated normally");
}

}  // namespace tlparse
