#include "runner/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"
#include "base/file_system.h"
#include "runner/program_output.h"
#include "runner/recorded_variables.h"
#include "runner/recording.h"

namespace tlparse {

namespace {

// Lines: version of Python, version of torch, its CUDA, a sitecustomize of the user's. It does not
// import torch.
constexpr char kAskPython[] = R"(
import importlib.util, os, re, sys
print(sys.version.split()[0])
spec = importlib.util.find_spec('torch')
text = ''
if spec and spec.origin:
    path = os.path.join(os.path.dirname(spec.origin), 'version.py')
    text = open(path).read() if os.path.exists(path) else ''
for name in ('__version__', 'cuda'):
    found = re.search(r'''^%s\s*(?::[^=]*)?=\s*['"]([^'"]*)''' % name, text, re.M)
    print(found[1] if found else '')
custom = importlib.util.find_spec('sitecustomize')
print(custom.origin if custom and custom.origin else '')
)";

struct Python {
  std::string version, torch, cuda, sitecustomize;
};

// What the program prints; nothing if it cannot be started, fails, or prints nothing for 20 s.
std::optional<std::string> OutputOf(const std::vector<std::string>& command) {
  const StartedProgram program = StartProgram(command, false);
  if (program.pid < 0) return std::nullopt;
  std::string output = ReadOutput(program, std::chrono::seconds(20));
  int status = 0;
  waitpid(program.pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(output) : std::nullopt;
}

std::optional<Python> Ask(const std::string& program) {
  const std::optional<std::string> output = OutputOf({program, "-c", kAskPython});
  if (!output) return std::nullopt;
  Python python;
  std::string_view rest = *output;
  for (std::string* const line :
       {&python.version, &python.torch, &python.cuda, &python.sitecustomize}) {
    *line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line->size() + 1, rest.size()));
  }
  return python;
}

std::pair<int, int> VersionOf(const std::string& text) {
  int major = 0, minor = 0;
  std::sscanf(text.c_str(), "%d.%d", &major, &minor);
  return {major, minor};
}

bool Reads(const std::string& torch, RecordPurpose purpose) {
  for (const RecordedVariable& row : RecordedVariables()) {
    if (row.purpose == purpose && VersionOf(torch) >= VersionOf(std::string(row.since)))
      return true;
  }
  return false;
}

DoctorCheck CheckTrace(const std::string& torch) {
  if (torch.empty())
    return {"structured trace", DoctorState::kNo,
            "this Python has no PyTorch; a program in another environment is recorded if it has "
            "PyTorch 2.3 or newer (--python names its Python)"};
  if (!Reads(torch, RecordPurpose::kTrace))
    return {"structured trace", DoctorState::kNo,
            fmt::format("PyTorch {} does not write it; 2.3 and newer do", torch)};
  return {"structured trace", DoctorState::kYes,
          fmt::format("PyTorch {} writes it for what torch.compile compiles", torch)};
}

DoctorCheck CheckRecorder(const Python& python) {
  const std::string name = "flight recorder";
  if (python.torch.empty()) return {name, DoctorState::kNo, "this Python has no PyTorch"};
  if (!Reads(python.torch, RecordPurpose::kBufferSize))
    return {name, DoctorState::kNo,
            fmt::format("PyTorch {} has none; 2.2 and newer have one for NCCL", python.torch)};
  const bool has_gloo = VersionOf(python.torch) >= std::pair(2, 8);
  if (python.cuda.empty() && !has_gloo)
    return {name, DoctorState::kNo,
            fmt::format("PyTorch {} without CUDA records no collectives; 2.8 and newer record "
                        "those of gloo",
                        python.torch)};
  return {name, DoctorState::kYes,
          fmt::format("collectives of {}; dumps when one times out (NCCL) and when the command "
                      "hangs",
                      python.cuda.empty() ? "gloo"
                      : has_gloo          ? "NCCL and gloo"
                                          : "NCCL")};
}

DoctorCheck CheckHook(const Python& python) {
  std::string detail =
      fmt::format("Python {} loads sitecustomize.py from PYTHONPATH", python.version);
  if (!python.sitecustomize.empty())
    detail += fmt::format("; {} is loaded after it", python.sitecustomize);
  return {"Python stacks", DoctorState::kYes, detail + "; python -I, -E and -S leave it out"};
}

DoctorCheck CheckMemory(const Python& python) {
  const std::string name = "memory (--memory)";
  if (python.torch.empty()) return {name, DoctorState::kNo, "this Python has no PyTorch"};
  if (python.cuda.empty())
    return {name, DoctorState::kNo,
            fmt::format("PyTorch {} is built without CUDA, and records no other allocator",
                        python.torch)};
  return {name, DoctorState::kYes,
          fmt::format("allocator of CUDA {}, from the moment on at which a program initializes it",
                      python.cuda)};
}

DoctorCheck CheckSettings() {
  std::vector<std::string> own;
  for (const RecordedVariable& row : RecordedVariables()) {
    if (const char* const value = std::getenv(std::string(row.name).c_str()))
      own.push_back(fmt::format("{}={}", row.name, value));
  }
  if (own.empty()) return {"settings", DoctorState::kYes, "none of your own"};
  return {"settings", DoctorState::kPartly,
          fmt::format("these are set already and stay: {}", fmt::join(own, ", "))};
}

DoctorCheck CheckFolder(const std::string& folder) {
  const std::string name = "output directory";
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return {name, DoctorState::kNo,
            fmt::format("'{}' cannot be written: {}; give another one with run's -o", folder,
                        std::strerror(errno))};
  struct statvfs space {};
  const bool is_known = statvfs(folder.c_str(), &space) == 0;
  const double free_gb =
      is_known ? static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) / 1e9
               : 0;
  constexpr double kLeastGb = 2;
  if (is_known && free_gb < kLeastGb)
    return {name, DoctorState::kPartly,
            fmt::format("{:.1f} GB are free, which logs of a large job can fill", free_gb)};
  if (!CanHoldPipes(folder))
    return {name, DoctorState::kPartly,
            "its file system has no pipes: no dumps of the recorder when the command hangs"};
  return {
      name, DoctorState::kYes,
      fmt::format("{:.1f} GB free{}", free_gb,
                  IsOnNetwork(folder) ? ", on a network: -o DIR/%h gives each host its own" : "")};
}

DoctorCheck CheckEnds() {
  const std::string name = "ends of processes";
  utsname kernel{};
  uname(&kernel);
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  const FileDescriptor closing(handle);
  const std::string release = kernel.release;
  if (handle < 0)
    return {name, DoctorState::kPartly,
            fmt::format("Linux {}: exit codes and signals of the command and of orphans alone",
                        release)};
  if (VersionOf(release) < std::pair(6, 15))
    return {name, DoctorState::kPartly,
            fmt::format("Linux {}: exit code or signal of a rank is known if it is seen before its "
                        "launcher asks; always from Linux 6.15 on",
                        release)};
  return {name, DoctorState::kYes,
          fmt::format("Linux {}: exit code or signal of each process", release)};
}

DoctorCheck CheckLimits() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  constexpr rlim_t kLeastFiles = 1024;
  if (files.rlim_cur < kLeastFiles)
    return {"limits", DoctorState::kPartly,
            fmt::format("a process may open {} files; ulimit -n raises it", files.rlim_cur)};
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0)
    return {"limits", DoctorState::kPartly, "there is no /dev/shm, which workers of loaders need"};
  return {"limits", DoctorState::kYes, fmt::format("{} open files", files.rlim_cur)};
}

}  // namespace

std::vector<DoctorCheck> AskDoctor(const std::string& python_program, const std::string& folder) {
  std::vector<DoctorCheck> checks;
  const std::optional<Python> python = Ask(python_program);
  if (python) {
    checks = {CheckTrace(python->torch), CheckRecorder(*python), CheckHook(*python),
              CheckMemory(*python)};
  } else {
    checks.push_back(
        {"Python", DoctorState::kNo,
         fmt::format("'{}' cannot be run; --python names another one", python_program)});
  }
  checks.push_back(CheckSettings());
  checks.push_back(CheckFolder(folder));
  checks.push_back(CheckEnds());
  checks.push_back(CheckLimits());
  return checks;
}

}  // namespace tlparse
