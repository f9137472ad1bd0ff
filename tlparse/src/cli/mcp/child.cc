#include "cli/mcp/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/file_descriptor.h"
#include "cli/command.h"

namespace tlparse {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = std::size_t{64} << 20;

struct Pipe {
  FileDescriptor read, write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(ErrorCode::kIo, "cannot make a pipe");
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

[[noreturn]] void RunAndExit(const std::function<int()>& run, const Pipe& out, const Pipe& err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out.write.get(), STDOUT_FILENO);
  dup2(err.write.get(), STDERR_FILENO);
  int code = kExitInternal;
  try {
    code = run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tlparse: internal error: %s\n", error.what());
  }
  if (std::fflush(stdout) != 0) code = kExitInternal;
  _exit(code);
}

// False: it has ended.
bool ReadSome(int descriptor, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t size = read(descriptor, buffer.data(), buffer.size());
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  text.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0;
}

class ChildOutput {
 public:
  ChildOutput(Pipe out, Pipe err, const ChildLimits& limits)
      : out_(std::move(out.read)), err_(std::move(err.read)), limits_(limits) {}

  // Reads what the child prints. Empty: it has closed its ends; else why it has to be stopped.
  std::string Read(ChildAnswer& answer) {
    const auto deadline = Steady::now() + limits_.limit;
    int input = limits_.on_input ? limits_.input : -1;
    while (out_.is_open() || err_.is_open()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
      if (left.count() <= 0)
        return fmt::format("stopped after {} s: ask for less", limits_.limit.count() / 1000);
      std::array<pollfd, 3> polled = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0},
                                      pollfd{input, POLLIN, 0}};
      if (poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0) continue;
      if (polled[0].revents != 0 && !ReadSome(out_.get(), answer.output)) out_.Close();
      if (polled[1].revents != 0 && !ReadSome(err_.get(), answer.message)) err_.Close();
      if (polled[2].revents != 0 && !limits_.on_input()) input = -1;
      if (limits_.is_cancelled && limits_.is_cancelled()) return "cancelled";
      if (answer.output.size() + answer.message.size() > kMostOutput)
        return "the answer is larger than 64 MB: ask for less";
    }
    return {};
  }

 private:
  FileDescriptor out_, err_;
  const ChildLimits& limits_;
};

}  // namespace

Result<ChildAnswer> RunInChild(const std::function<int()>& run, const ChildLimits& limits) {
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  const pid_t child = fork();
  if (child < 0) return Fail(ErrorCode::kIo, "cannot start a process");
  if (child == 0) RunAndExit(run, out, err);
  out.write.Close();
  err.write.Close();
  ChildAnswer answer;
  const std::string stopped = ChildOutput(std::move(out), std::move(err), limits).Read(answer);
  // A SIGKILL would leave its temporary files.
  if (!stopped.empty()) kill(child, SIGTERM);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!stopped.empty()) return Fail(ErrorCode::kUsage, stopped);
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

}  // namespace tlparse
