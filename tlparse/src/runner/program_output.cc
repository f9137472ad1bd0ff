#include "runner/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>

#include <array>

extern char** environ;

namespace tlparse {

StartedProgram StartProgram(const std::vector<std::string>& command, bool has_errors) {
  StartedProgram program;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return program;
  program.output = FileDescriptor(ends[0]);
  const FileDescriptor write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  if (has_errors) {
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (posix_spawnp(&program.pid, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
    program.pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return program;
}

std::string ReadOutput(const StartedProgram& program, std::chrono::milliseconds longest) {
  std::string text;
  std::array<char, 4096> buffer{};
  pollfd waiting{program.output.get(), POLLIN, 0};
  while (true) {
    if (poll(&waiting, 1, static_cast<int>(longest.count())) <= 0) {
      kill(program.pid, SIGKILL);
      return text;
    }
    const ssize_t count = read(program.output.get(), buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace tlparse
