#include "runner/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace tlparse {

namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

std::atomic<pid_t> passed_to = 0;  // 0: the command has ended
std::atomic<int> code_of_end = 0;

// SIGINT and SIGQUIT go to the group, as a terminal sends them; others to the command alone, as
// somebody sends them who knows its process id.
void PassOn(int number) {
  const int saved = errno;
  const pid_t pid = passed_to;
  if (pid == 0) {
    if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
      _exit(code_of_end);
  } else {
    kill(number == SIGINT || number == SIGQUIT ? -pid : pid, number);
  }
  errno = saved;
}

void SetHandlers() {
  for (const int number : kPassedOn) {
    struct sigaction action {
    }, before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as nohup sets it; the command inherits that
    action.sa_handler = PassOn;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;  // tcsetpgrp and output from the background
  sigaction(SIGTTOU, &ignore, nullptr);
}

// After a fault of this program the command continues: waits for it and exits with its exit code.
void OutliveFault(int number) {
  signal(number, SIG_DFL);
  const pid_t pid = passed_to;
  if (pid == 0) {
    raise(number);
    return;
  }
  constexpr char kText[] = "tlparse: an internal error; the command goes on, unwatched\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  // Another thread has waited for it; it called Ends before.
  _exit(ended == pid ? ExitCodeOf(status) : code_of_end.load());
}

void SetFaultHandlers() {
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction action {
    }, before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_DFL) continue;  // a sanitizer's
    action.sa_handler = OutliveFault;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

// A process that sends the command SIGTERM where this one has been ended by SIGKILL: an orphan would
// keep devices and ports. PR_SET_PDEATHSIG sends it once for each thread. It ends when `kept` is closed;
// -1: there is none.
pid_t StartGuard(pid_t command, FileDescriptor& kept) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, command, 0));
  const pid_t guard = handle < 0 ? -1 : fork();
  if (guard == 0) {
    setsid();
    for (const int number : kPassedOn) signal(number, SIG_IGN);
    constexpr int kMost = 1024;
    for (int other = 0; other < kMost; ++other) {
      if (other != ends[0] && other != handle) close(other);
    }
    char byte = 0;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    syscall(SYS_pidfd_send_signal, handle, SIGTERM, nullptr, 0);  // if it has not ended
    _exit(0);
  }
  close(ends[0]);
  if (handle >= 0) close(handle);
  kept = FileDescriptor(ends[1]);
  return guard;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec.
[[noreturn]] void Execute(std::vector<char*>& arguments, std::vector<char*>& variables, int errors,
                          int terminal) {
  setpgid(0, 0);
  if (terminal >= 0) {
    signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(terminal, getpid());
    signal(SIGTTOU, SIG_DFL);
  }
  environ = variables.data();
  execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(errors, &error, sizeof error);
  _exit(127);
}

}  // namespace

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int ExitCodeOf(const siginfo_t& ended) {
  return ended.si_code == CLD_EXITED ? ended.si_status : 128 + ended.si_status;
}

Child::~Child() { passed_to = 0; }

Result<void> Child::Start(const std::vector<std::string>& command,
                          const std::vector<std::string>& environment) {
  FileDescriptor terminal(open("/dev/tty", O_RDWR | O_CLOEXEC));
  if (terminal.is_open() && tcgetpgrp(terminal.get()) == getpgrp()) terminal_ = std::move(terminal);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Fail(ErrorCode::kIo, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<char*> arguments = Pointers(command), variables = Pointers(environment);
  pid_ = fork();
  if (pid_ < 0)
    return Fail(ErrorCode::kIo, fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid_ == 0) Execute(arguments, variables, write_end.get(), terminal_.get());
  setpgid(pid_, pid_);  // whichever of the two is first
  passed_to = pid_;
  SetHandlers();
  SetFaultHandlers();
  guard_ = StartGuard(pid_, guarded_);
  write_end.Close();
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(read_end.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof error) return {};
  Ends(error == ENOENT ? 127 : 126);
  waitpid(pid_, nullptr, 0);
  Ended();
  return Fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              fmt::format("cannot execute '{}': {}", command.front(), std::strerror(error)));
}

void Child::TakeTerminal(pid_t group) {
  if (terminal_.is_open()) tcsetpgrp(terminal_.get(), group);
}

void Child::StopWithIt() {
  if (!terminal_.is_open()) return;
  TakeTerminal(getpgrp());
  raise(SIGSTOP);
  if (tcgetpgrp(terminal_.get()) == getpgrp()) TakeTerminal(pid_);
  kill(-pid_, SIGCONT);
}

void Child::Ends(int code) { code_of_end = code; }

void Child::Ended() {
  passed_to = 0;
  guarded_.Close();
  TakeTerminal(getpgrp());
}

}  // namespace tlparse
