// What another program prints.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace tlparse {

struct StartedProgram {
  pid_t pid = -1;         // -1: it cannot be started
  FileDescriptor output;  // a pipe
};

// Searches PATH. Its standard input is empty; standard error goes to the pipe or, without
// `has_errors`, nowhere. The caller waits for it.
StartedProgram StartProgram(const std::vector<std::string>& command, bool has_errors);

// What it prints until it closes its output. One that prints nothing for so long is killed.
std::string ReadOutput(const StartedProgram& program, std::chrono::milliseconds longest);

}  // namespace tlparse
